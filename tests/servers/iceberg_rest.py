"""A REST catalog of Iceberg for tests: the one of Iceberg's own tests, in a process on the loopback interface.

It keeps its tables' metadata in memory; clients write manifests and data. `python -m tests.servers.iceberg_rest` fetches
it, so that no test waits for that.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from rollup.jars import resolve
from rollup.java import java

_LIST = Path(__file__).with_name("iceberg_rest.xml")


class RestCatalog:
    """Up in a second; `with RestCatalog() as server:`. It gives a token to whoever has a credential, and asks for none."""

    def __init__(self) -> None:
        self.uri = ""
        self._held = ExitStack()

    def __enter__(self) -> Self:
        classes = ":".join(map(str, (resolve(_LIST) / "iceberg-rest").glob("*.jar")))
        options = ["-Xmx256m", "-XX:TieredStopAtLevel=1"]
        started: Any = launch_gateway(
            classpath=classes, java_path=str(java()), javaopts=options, die_on_exit=True, return_proc=True
        )
        port, process = started
        self._held.callback(process.wait, 10)
        self._held.callback(process.kill)
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
        self._held.callback(gateway.shutdown)
        jvm: Any = gateway.jvm
        iceberg, jetty = jvm.org.apache.iceberg, jvm.org.eclipse.jetty
        catalog = iceberg.inmemory.InMemoryCatalog()
        catalog.initialize("tests", {"warehouse": "/"})
        servlet = iceberg.rest.RESTCatalogServlet(iceberg.rest.RESTCatalogAdapter(catalog))
        context = jetty.servlet.ServletContextHandler()
        context.addServlet(jetty.servlet.ServletHolder(servlet), "/*")
        server = jetty.server.Server(jvm.java.net.InetSocketAddress("127.0.0.1", 0))
        server.setHandler(context)
        server.start()
        self.uri = f"http://127.0.0.1:{server.getURI().getPort()}"
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()


if __name__ == "__main__":
    resolve(_LIST)
