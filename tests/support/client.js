// SPDX-License-Identifier: MIT
// Calls over grpc-js, as bytes: node client.js ENDPOINT, with one JSON object a line on stdin:
//   {"path": ..., "hex": ..., "times": n, "gzip": true, "cancel": true, "stream": n, "deadline_ms": n}
// and one array of [code, details, hex...] for each on stdout, in the same order. stream: ends after so many messages.
"use strict";
const grpc = require("@grpc/grpc-js");
const readline = require("readline");

const same = (bytes) => bytes;
const gzip = grpc.compressionAlgorithms.gzip;

function once(client, ask) {
	const options = {deadline: Date.now() + (ask.deadline_ms || 10000)};
	const request = Buffer.from(ask.hex || "", "hex");
	return new Promise((resolve) => {
		if (ask.stream) {
			const got = [];
			const call = client.makeServerStreamRequest(ask.path, same, same, request, new grpc.Metadata(), options);
			call.on("data", (bytes) => {
				got.push(bytes.toString("hex"));
				if (got.length === ask.stream)
					call.cancel();
			});
			call.on("error", () => {});
			call.on("status", (status) => resolve([status.code, status.details, ...got]));
			return;
		}
		const call = client.makeUnaryRequest(ask.path, same, same, request, new grpc.Metadata(), options, (error, bytes) =>
			resolve(error ? [error.code, error.details] : [0, "", bytes.toString("hex")]));
		if (ask.cancel)
			call.cancel();
	});
}

async function main() {
	const clients = {};
	for await (const line of readline.createInterface({input: process.stdin})) {
		const ask = JSON.parse(line);
		const kind = ask.gzip ? "gzip" : "plain";
		clients[kind] = clients[kind] || new grpc.Client(process.argv[2], grpc.credentials.createInsecure(), {
			"grpc.default_compression_algorithm": ask.gzip ? gzip : grpc.compressionAlgorithms.identity,
			"grpc.max_send_message_length": -1, "grpc.enable_http_proxy": 0,
		});
		const calls = Array.from({length: ask.times || 1}, () => once(clients[kind], ask));
		console.log(JSON.stringify(await Promise.all(calls)));
	}
	Object.values(clients).forEach((client) => client.close());
}

main();
