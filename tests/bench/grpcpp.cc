// SPDX-License-Identifier: MIT
// What most people would write: grpc++ with its callback API, answering a constant. Stands beside postern in the bench where
// its libraries are installed. Writes "port N" and "library V", then serves until it is ended.
#include <grpcpp/grpcpp.h>

#include <cstdio>

#include "envoy/service/auth/v3/external_auth.grpc.pb.h"

using envoy::service::auth::v3::Authorization;
using envoy::service::auth::v3::CheckRequest;
using envoy::service::auth::v3::CheckResponse;

namespace
{

CheckResponse make_answer()
{
	CheckResponse answer;
	auto *ok = answer.mutable_ok_response();
	const auto set = [](envoy::config::core::v3::HeaderValueOption *option, const char *name, const char *value) {
		option->mutable_header()->set_key(name);
		option->mutable_header()->set_value(value);
		option->mutable_append();
		option->set_append_action(envoy::config::core::v3::HeaderValueOption::OVERWRITE_IF_EXISTS_OR_ADD);
	};

	answer.mutable_status();
	set(ok->add_headers(), "x-postern-client", "203.0.113.9");
	ok->add_headers_to_remove("x-postern-identity");
	ok->add_headers_to_remove("x-internal-token");
	set(ok->add_response_headers_to_add(), "ratelimit-policy", "\"per-client\";q=1000000;w=1");
	set(ok->add_response_headers_to_add(), "ratelimit", "\"per-client\";r=999999;t=1");
	for (const char *name : {"reason", "rule", "client"})
		(*answer.mutable_dynamic_metadata()->mutable_fields())[name].set_string_value("allowed");
	return answer;
}

class Service final : public Authorization::CallbackService
{
	grpc::ServerUnaryReactor *Check(
		grpc::CallbackServerContext *context, const CheckRequest *, CheckResponse *response) override
	{
		static const CheckResponse answer = make_answer();
		grpc::ServerUnaryReactor *reactor = context->DefaultReactor();

		*response = answer;
		reactor->Finish(grpc::Status::OK);
		return reactor;
	}
};

} // namespace

int main()
{
	Service service;
	grpc::ServerBuilder builder;
	int port = 0;

	builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
	builder.RegisterService(&service);
	const auto server = builder.BuildAndStart();
	std::printf("port %d\nlibrary %s\n", port, grpc::Version().c_str());
	std::fflush(stdout);
	server->Wait();
}
