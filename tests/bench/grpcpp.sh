#!/bin/bash
# SPDX-License-Identifier: MIT
# Builds BUILD/bench/grpcpp where Debian's libgrpc++-dev, libprotobuf-dev, protobuf-compiler-grpc and g++ are installed;
# nothing else of postern needs them, so without them the row is left out.
#   tests/bench/grpcpp.sh BUILD
set -eu
cd "$(dirname "$0")/../.."
build=${1:?usage: tests/bench/grpcpp.sh BUILD}
program=$build/bench/grpcpp
gen=$build/bench/cpp
plugin=$(type -P grpc_cpp_plugin) || exit 0
pkg-config --exists grpc++ protobuf && type -P protoc g++ >/dev/null || exit 0
if [ -x "$program" ] && [ "$program" -nt tests/bench/grpcpp.cc ] && [ -z "$(find api/proto -newer "$program" -name '*.proto')" ]; then
	exit 0
fi
echo "  CXX     tests/bench/grpcpp.cc"
rm -rf "$gen"
mkdir -p "$gen"
# The library brings google.protobuf itself.
protos=$(cd api/proto && find envoy google/rpc -name '*.proto')
# shellcheck disable=SC2086
protoc -I/usr/include -Iapi/proto --plugin=protoc-gen-grpc="$plugin" --cpp_out="$gen" --grpc_out="$gen" $protos
find "$gen" -name '*.cc' -print0 | xargs -0 g++ -std=c++17 -O2 -w -I"$gen" -o "$program" tests/bench/grpcpp.cc \
	$(pkg-config --cflags --libs grpc++ protobuf)
