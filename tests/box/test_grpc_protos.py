# SPDX-License-Identifier: MIT
"""api/proto holds a part of what others define. That part must mean the same bytes: each message is filled, written with our
descriptors and read with theirs, and the other way round, the other way with all the fields that we have left out."""
import ast
import pathlib
import random

import pytest
from google.protobuf import (
    any_pb2, descriptor_pb2, descriptor_pool, duration_pb2, empty_pb2, message_factory, struct_pb2, timestamp_pb2, wrappers_pb2,
)  # fmt: skip
from google.protobuf.descriptor import FieldDescriptor

import grpc_door
from gateway import require

WELL_KNOWN = [any_pb2, struct_pb2, wrappers_pb2, duration_pb2, timestamp_pb2, empty_pb2]
OURS = grpc_door.POOL
NAMES = sorted(
    f"{file.package}.{name}"
    for file in grpc_door.FILES
    if file.package.startswith(("envoy.", "google."))
    for name in grpc_door.message_names(file)
)


def serialized(path):
    """The file descriptor in a generated module; read, not run, because it wants a newer library than Debian's."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", None) == "AddSerializedFile":
            return descriptor_pb2.FileDescriptorProto.FromString(ast.literal_eval(node.args[0]))
    raise AssertionError(f"no descriptor in {path}")


@pytest.fixture(scope="module")
def theirs():
    folder = pathlib.Path(require("xds-protos"))
    pool = descriptor_pool.DescriptorPool()
    added = set()

    def add(name):
        if name in added:
            return
        added.add(name)
        path = folder / name.replace(".proto", "_pb2.py").replace("-", "_")
        if path.exists():
            file = serialized(path)
        else:
            (module,) = [m for m in [*WELL_KNOWN, descriptor_pb2] if m.DESCRIPTOR.name == name]
            file = descriptor_pb2.FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
        for imported in file.dependency:
            add(imported)
        pool.Add(file)

    for file in grpc_door.FILES:
        if file.package.startswith(("envoy.", "google.")):
            add(file.name)
    return pool


def fill(message, rng, depth=0):
    """Sets every field that is no part of an unbounded nesting; of a oneof the last one wins, so that is a choice, too."""
    fields = list(message.DESCRIPTOR.fields)
    rng.shuffle(fields)
    for field in fields:
        if depth > 5 and field.message_type is not None:
            continue
        repeated = field.label == FieldDescriptor.LABEL_REPEATED
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            target, value = getattr(message, field.name), field.message_type.fields_by_name["value"]
            for i in range(2):
                key = rng.choice("abcdef") + str(i)
                if value.message_type is not None:
                    fill(target[key], rng, depth + 2)
                else:
                    target[key] = scalar(value, rng)
        elif field.message_type is not None:
            for _ in range(2 if repeated else 1):
                fill(getattr(message, field.name).add() if repeated else getattr(message, field.name), rng, depth + 1)
            if not repeated:
                getattr(message, field.name).SetInParent()
        elif repeated:
            getattr(message, field.name).extend(scalar(field, rng) for _ in range(2))
        else:
            setattr(message, field.name, scalar(field, rng))


def scalar(field, rng):
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        text = "".join(rng.choice("abc/:\u00e4\u20ac") for _ in range(rng.randrange(200)))
        return text if field.type == FieldDescriptor.TYPE_STRING else bytes(rng.randrange(256) for _ in range(20))
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return True
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return rng.choice([value.number for value in field.enum_type.values])
    if field.cpp_type in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return rng.randrange(1000) / 4
    signed = field.cpp_type in (FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64)
    return rng.choice([-1, 7, 1 << 30] if signed else [7, 1 << 31])


def same(ours, theirs):
    """Every field of ours has the value that theirs has; and presence, where it can be told."""
    for field in ours.DESCRIPTOR.fields:
        a, b = getattr(ours, field.name), getattr(theirs, field.name)
        if field.message_type is None:
            a, b = (list(a), list(b)) if field.label == FieldDescriptor.LABEL_REPEATED else (a, b)
            assert a == b, field.full_name
        elif field.message_type.GetOptions().map_entry:
            assert set(a) == set(b), field.full_name
            for key in a:
                same(a[key], b[key]) if hasattr(a[key], "DESCRIPTOR") else None
                assert hasattr(a[key], "DESCRIPTOR") or a[key] == b[key]
        elif field.label == FieldDescriptor.LABEL_REPEATED:
            assert len(a) == len(b), field.full_name
            for x, y in zip(a, b):
                same(x, y)
        else:
            assert ours.HasField(field.name) == theirs.HasField(field.name), field.full_name
            same(a, b)


def classes(name, theirs):
    return [message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName(name)) for pool in (OURS, theirs)]


@pytest.mark.parametrize("name", NAMES)
def test_fields_are_theirs(theirs, name):
    mine, full = OURS.FindMessageTypeByName(name), theirs.FindMessageTypeByName(name)
    assert len(mine.fields) > 0
    for field in mine.fields:
        other = full.fields_by_name[field.name]
        kinds = [
            (f.number, f.type, f.label, f.message_type and f.message_type.full_name, f.enum_type and f.enum_type.full_name,
             f.containing_oneof and f.containing_oneof.name, f.json_name)
            for f in (field, other)
        ]  # fmt: skip
        assert kinds[0] == kinds[1]
        if field.enum_type:
            numbers = {value.name: value.number for value in field.enum_type.values}
            assert all(other.enum_type.values_by_name[value].number == number for value, number in numbers.items())


@pytest.mark.parametrize("name", NAMES)
def test_what_we_write_they_read_and_the_other_way_round(theirs, name):
    mine, full = classes(name, theirs)
    for seed in range(20):
        rng = random.Random(seed)
        written = mine()
        fill(written, rng)
        read = full.FromString(written.SerializeToString())
        same(written, read)
        assert mine.FromString(read.SerializeToString()) == written

        written = full()
        fill(written, rng)
        read = mine.FromString(written.SerializeToString())
        same(read, written)


def test_methods_are_theirs(theirs):
    mine, full = (pool.FindServiceByName("envoy.service.auth.v3.Authorization") for pool in (OURS, theirs))
    assert [m.name for m in mine.methods] == ["Check"]
    for a, b in ((mine.methods_by_name["Check"], full.methods_by_name["Check"]),):
        assert (a.input_type.full_name, a.output_type.full_name) == (b.input_type.full_name, b.output_type.full_name)
