"""A topic behind TLS or SASL is read by tasks with the same options as by Spark, and what they have no equal for is not lost.

One real broker with a listener of each kind; Spark's own reader, with the same options, is the oracle.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from rollup.core.errors import SourceError
from rollup.sources.topics import messages
from rollup.sources.topics.ranges import Range
from rollup.sources.topics.ways import Way, way
from rollup.stores.postgres.server import free_port
from tests.job.test_topics import by_spark, by_tasks, nasty, send

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.servers.kafka import KafkaBroker

_PLAIN, _SCRAM = (f"org.apache.kafka.common.security.{name}LoginModule" for name in ("plain.Plain", "scram.Scram"))
_PASSWORD = "p=a;s s'w//rd"
_LISTENERS = """
listeners=BROKER://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller}},SASL://127.0.0.1:{sasl},TLS://127.0.0.1:{tls},BOTH://127.0.0.1:{both}
advertised.listeners=BROKER://127.0.0.1:{{port}},SASL://127.0.0.1:{sasl},TLS://127.0.0.1:{tls},BOTH://127.0.0.1:{both}
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL,BOTH:SASL_SSL
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl.scram-sha-256.sasl.jaas.config={scram} required;
listener.name.sasl.scram-sha-512.sasl.jaas.config={scram} required;
listener.name.sasl.plain.sasl.jaas.config={plain} required user_alice="{password}";
listener.name.both.sasl.enabled.mechanisms=PLAIN
listener.name.both.plain.sasl.jaas.config={plain} required user_alice="{password}";
ssl.keystore.type=PEM
ssl.keystore.location={folder}/broker.pem
ssl.truststore.type=PEM
ssl.truststore.location={folder}/ca.pem
listener.name.tls.ssl.client.auth=required
"""


def _login(module: str, password: str = _PASSWORD) -> str:
    return f'{module} required username="alice" password="{password}";'


def _signed(folder: Path) -> None:
    """An authority, and a certificate for the broker's address and one for a client by it, each with its key."""
    now, keys = (
        datetime.datetime.now(datetime.UTC),
        {name: ec.generate_private_key(ec.SECP256R1()) for name in ("ca", "broker", "client")},
    )
    authority = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")])
    for name, key in keys.items():
        made = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(authority)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=name == "ca", path_length=None), critical=True)
        )
        if name == "broker":
            address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
            made = made.add_extension(x509.SubjectAlternativeName([address]), critical=False)
        content = made.sign(keys["ca"], hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        if name != "ca":
            form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
            content = key.private_bytes(*form) + content
        (folder / f"{name}.pem").write_bytes(content)


class Guarded:
    """A broker with its listeners, and a topic in it whose three partitions hold messages that are hard to take."""

    def __init__(self, broker: KafkaBroker, ports: Mapping[str, int], folder: Path) -> None:
        self.broker, self.ports, self.folder = broker, ports, folder
        self.topic = broker.new_topic(partitions=2)
        producer = broker.producer()
        for partition in range(2):
            send(producer, self.topic, nasty(partition, 50), partition)
        assert producer.flush(30) == 0
        self.whole = [Range(partition, 0, 50) for partition in range(2)]

    def source(self, listener: str, **more: str) -> dict[str, Any]:
        """A source's options at a listener; `more` are those of Kafka's client, with `_` for `.`."""
        trusted = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.folder / "ca.pem")}
        given = {
            **(trusted if listener != "sasl" else {}),
            **{name.replace("_", "."): each for name, each in more.items()},
        }
        named = {"kafka.security.protocol": {"sasl": "SASL_PLAINTEXT", "tls": "SSL", "both": "SASL_SSL"}[listener]}
        named |= {f"kafka.{name}": value for name, value in given.items()}
        servers = f"127.0.0.1:{self.ports[listener]}"
        return {"kind": "kafka", "servers": servers, "topic": self.topic, "options": named}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    from tests.servers.kafka import KafkaBroker

    folder, ports = tmp_path_factory.mktemp("guarded"), {name: free_port() for name in ("sasl", "tls", "both")}
    _signed(folder)
    more = _LISTENERS.format(**ports, folder=folder, plain=_PLAIN, scram=_SCRAM, password=_PASSWORD)
    users = [f"SCRAM-SHA-{bits}=[name=alice,password={_PASSWORD}]" for bits in (256, 512)]
    with KafkaBroker(more=more, users=users) as broker:
        yield Guarded(broker, ports, folder)


def _ways(guarded: Guarded) -> dict[str, dict[str, Any]]:
    client = guarded.folder / "client.pem"
    key, chain = (part + "-----\n" for part in client.read_text().split("-----\n-----BEGIN CERTIFICATE"))
    return {
        "plain": guarded.source("sasl", sasl_mechanism="PLAIN", sasl_jaas_config=_login(_PLAIN)),
        "scram": guarded.source("sasl", sasl_mechanism="SCRAM-SHA-256", sasl_jaas_config=_login(_SCRAM)),
        "scram 512": guarded.source("sasl", sasl_mechanism="SCRAM-SHA-512", sasl_jaas_config=_login(_SCRAM)),
        "both": guarded.source("both", sasl_mechanism="PLAIN", sasl_jaas_config=_login(_PLAIN)),
        "certificates": guarded.source("tls", ssl_keystore_type="PEM", ssl_keystore_location=str(client)),
        "texts": guarded.source(
            "tls",
            ssl_keystore_type="PEM",
            ssl_keystore_key=key,
            ssl_keystore_certificate_chain="-----BEGIN CERTIFICATE" + chain.removesuffix("-----\n"),
        ),
    }


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
def test_tasks_read_behind_each_kind_of_door_what_spark_hands_over(guarded: Guarded, spark: SparkSession) -> None:
    for name, source in _ways(guarded).items():
        found = by_tasks(source, *guarded.whole)
        assert found.num_rows == 100, name
        assert found.to_pylist() == by_spark(spark, source, *guarded.whole).to_pylist(), name


@pytest.mark.kafka
@pytest.mark.parametrize("wrong", ["password", "authority", "no certificate"])
@pytest.mark.few(1)
def test_what_the_broker_or_the_client_does_not_trust_is_said(
    guarded: Guarded, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "PATIENCE", 1.0)
    source, said = {
        "password": (guarded.source("sasl", sasl_mechanism="PLAIN", sasl_jaas_config=_login(_PLAIN, "x")), "uthentication"),
        "authority": (
            guarded.source("both", sasl_mechanism="PLAIN", sasl_jaas_config=_login(_PLAIN), ssl_truststore_location=str(guarded.folder / "client.pem")),
            "verif",
        ),
        "no certificate": (guarded.source("tls"), "certificate"),
    }[wrong]  # fmt: skip
    with pytest.raises(SourceError, match=said):
        by_tasks(source, *guarded.whole)


_SSL = {"kafka.security.protocol": "SSL"}
_SASL = {"kafka.security.protocol": "sasl_plaintext"}


@pytest.mark.parametrize(
    ("given", "lost"),
    [
        ({**_SSL, "kafka.ssl.truststore.location": "/t.jks"}, "kafka.ssl.truststore.location"),
        ({**_SSL, "kafka.ssl.truststore.type": "PEM"}, "kafka.ssl.truststore.type"),
        (
            {**_SSL, "kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.location": "/t", "kafka.ssl.truststore.password": "x"},
            "kafka.ssl.truststore.password",
        ),
        ({**_SSL, "kafka.ssl.keystore.type": "PKCS12", "kafka.ssl.keystore.location": "/k"}, "kafka.ssl.keystore.type"),
        ({**_SSL, "kafka.ssl.cipher.suites": "x"}, "kafka.ssl.cipher.suites"),
        ({**_SSL, "kafka.ssl.endpoint.identification.algorithm": "LDAPS"}, "kafka.ssl.endpoint.identification.algorithm"),
        ({**_SSL, "kafka.SASL.Mechanism": "PLAIN"}, "kafka.SASL.Mechanism"),
        ({"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.location": "/t"}, "kafka.ssl.truststore.type"),
        ({"kafka.security.protocol": "other"}, "kafka.security.protocol"),
        (_SASL, "kafka.security.protocol"),
        ({**_SASL, "kafka.sasl.mechanism": "GSSAPI"}, "kafka.sasl.mechanism"),
        ({**_SASL, "kafka.sasl.jaas.config": _login(_PLAIN)}, "kafka.sasl.jaas.config"),
        ({**_SASL, "kafka.sasl.mechanism": "PLAIN", "kafka.sasl.jaas.config": _login(_SCRAM)}, "kafka.sasl.jaas.config"),
        *(
            ({**_SASL, "kafka.sasl.mechanism": "PLAIN", "kafka.sasl.jaas.config": f"{_PLAIN} required {told}"}, "kafka.sasl.jaas.config")
            for told in (
                'username="a" password="b"',  # no end
                'username="a";',
                'username="a" password="b" tokenauth="true";',
                'username="a" password="b" password="c";',
                'username="a" password="b\\"c";',
                'username="a" password="é";',
                'username="a" password=b;',
                f'username="a" password="b"; {_PLAIN} required;',
            )
        ),
        ({**_SASL, "kafka.sasl.mechanism": "PLAIN", "kafka.sasl.jaas.config": _login(_PLAIN), "kafka.sasl.login.class": "x"}, "kafka.sasl.login.class"),
    ],
)  # fmt: skip
def test_what_tasks_have_no_equal_for_leaves_the_topic_to_spark(given: dict[str, str], lost: str) -> None:
    assert way({"servers": "s:1", "options": given}) == Way(None, f"tasks cannot take its option {lost}")


def test_the_check_of_host_names_is_left_out_only_where_that_is_asked_for() -> None:
    for told, wanted in ((None, None), ("https", "https"), ("HTTPS", "https"), ("", "none")):
        more = {} if told is None else {"kafka.ssl.endpoint.identification.algorithm": told}
        settings = way({"servers": "s:1", "options": {**_SSL, **more}}).settings
        assert settings is not None and settings.get("ssl.endpoint.identification.algorithm") == wanted
