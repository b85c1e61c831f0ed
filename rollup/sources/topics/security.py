"""TLS and SASL: settings of Kafka's client in Java, in the form in which librdkafka has them.

Exactly or not at all, for a setting that got lost would be a weaker connection. Java's key stores, Kerberos, OAuth and
login modules of others have no equal there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

Settings = Mapping[str, str]
PREFIXES = ("kafka.security.", "kafka.sasl.", "kafka.ssl.")
"""How the options begin that are told here."""
_PROTOCOL, _MECHANISM, _JAAS = "kafka.security.protocol", "kafka.sasl.mechanism", "kafka.sasl.jaas.config"
_TRUST_TYPE, _OWN_TYPE = "kafka.ssl.truststore.type", "kafka.ssl.keystore.type"
_HOST_NAMES = "kafka.ssl.endpoint.identification.algorithm"
_PEM = "PEM"
_TRUST: Mapping[str, tuple[str, ...]] = {
    "kafka.ssl.truststore.location": ("ssl.ca.location",),
    "kafka.ssl.truststore.certificates": ("ssl.ca.pem",),
}
_OWN: Mapping[str, tuple[str, ...]] = {
    # Java has both in one file, of which each of the two takes what it is named for.
    "kafka.ssl.keystore.location": ("ssl.certificate.location", "ssl.key.location"),
    "kafka.ssl.keystore.certificate.chain": ("ssl.certificate.pem",),
    "kafka.ssl.keystore.key": ("ssl.key.pem",),
    "kafka.ssl.key.password": ("ssl.key.password",),
}
_MODULES: Mapping[str, str] = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
# Plain ASCII without escapes: of anything else the two might make different names and passwords.
_OPTION = r'(\w+)\s*=\s*"([ !#-\[\]-~]+)"\s*'
_LOGIN = re.compile(
    rf"\s*(?P<module>[\w.]+)\s+(?i:required|requisite|sufficient|optional)\s+(?P<options>(?:{_OPTION})+);\s*", re.ASCII
)


def secured(given: Mapping[str, str]) -> Settings | str:
    """Options that begin with PREFIXES, in lower case, as settings; or the name of one that has no equal.

    >>> secured({"kafka.security.protocol": "SSL", "kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.location": "/ca"})
    {'security.protocol': 'ssl', 'ssl.ca.location': '/ca'}
    >>> secured({"kafka.security.protocol": "SSL", "kafka.ssl.truststore.location": "/ca.jks"})
    'kafka.ssl.truststore.location'
    """
    left = dict(given)
    protocol = left.pop(_PROTOCOL, "plaintext").lower()
    if protocol not in ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"):
        return _PROTOCOL
    found = {} if protocol == "plaintext" else {"security.protocol": protocol}
    if protocol.startswith("sasl"):
        login = _login(left.pop(_MECHANISM, "GSSAPI"), left.pop(_JAAS, ""))
        if login is None:
            return next((name for name in (_JAAS, _MECHANISM) if name in given), _PROTOCOL)
        found |= login
    if protocol.endswith("ssl"):
        found |= _stores(left)
        if left.get(_HOST_NAMES, "-").lower() in ("", "https"):
            found["ssl.endpoint.identification.algorithm"] = left.pop(_HOST_NAMES).lower() or "none"
    return next(iter(left), found)  # what is left has no meaning here, or none that is known


def _login(mechanism: str, jaas: str) -> Settings | None:
    """Name and password out of the configuration of Kafka's own login modules."""
    told = _LOGIN.fullmatch(jaas)
    if told is None or _MODULES.get(mechanism) != told["module"]:
        return None
    pairs = re.findall(_OPTION, told["options"], re.ASCII)
    options = dict(pairs)
    if len(pairs) != len(options) or options.keys() != {"username", "password"}:
        return None
    return {
        "sasl.mechanisms": mechanism,
        "sasl.username": options["username"],
        "sasl.password": options["password"],
    }


def _stores(left: dict[str, str]) -> dict[str, str]:
    """What to trust and what to show, taken out of the options where they are PEM."""
    found = dict[str, str]()
    for kind, names in ((_TRUST_TYPE, _TRUST), (_OWN_TYPE, _OWN)):
        if left.get(kind, "").upper() == _PEM and any(name in left for name in names):
            del left[kind]
            for name in names.keys() & left.keys():
                found |= dict.fromkeys(names[name], left.pop(name))
    return found
