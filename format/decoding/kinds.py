"""What keys and values can be decoded as."""

from __future__ import annotations

#: The kinds with schemas, as a registry names them in other words.
SCHEMA_KINDS = ("avro", "protobuf", "json-schema")
#: What ``key_as`` and ``value_as`` can be.
KINDS = ("auto", "raw", "string", "json", *SCHEMA_KINDS, "int", "long", "double", "uuid")
