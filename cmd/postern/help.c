/* SPDX-License-Identifier: MIT */
/*
 * The table of verbs with their help, and the verb that prints it.
 */
#include "verb.h"

#include <stdio.h>

#define SETTINGS_HELP \
	"Settings, from a file or from quick flags, never both:\n" \
	"  --config FILE                 JSON file; default: the path in POSTERN_CONFIG, else built-in settings\n" \
	"  --rate RATE                   300/minute, 10/second, 100/15m\n" \
	"  --burst N                     default: the rate's number\n" \
	"  --client STRATEGY[:PARAMETER] peer, single_value, rightmost, hop_count:N, trusted_ranges, named_header:NAME\n" \
	"  --trusted-proxies RANGES      10.0.0.0/8,192.0.2.7; alone it implies trusted_ranges\n" \
	"  --identity NAME=FILE          a service of ours and the file with its token; repeatable\n" \
	"  --caller RANGE                who may ask: a range or \"unix\"; repeatable; default loopback and unix\n"

const struct verb verbs[] = {
	{"serve", verb_serve, "run the decision service",
		"postern serve\n"
		"postern serve --config /etc/postern/postern.json\n"
		"postern serve --rate 10/minute --trusted-proxies 172.18.0.0/16 --listen 127.0.0.1:8080\n\n"
		SETTINGS_HELP
		"  --listen [http=|ops=|admin=]ADDR  ADDR is HOST:PORT or unix:/path?mode=0660; beats the file; repeatable\n\n"
		"SIGTERM drains and exits 0; a second one exits at once. SIGHUP takes a changed file, and token files, without\n"
		"a pause; one with a fault changes nothing.\n"},
	{"check-config", verb_check_config, "check a configuration file",
		"postern check-config postern.json\n"
		"postern check-config --without-secrets postern.json\n\n"
		"Names every fault with its place and exits 3, or says OK and exits 0.\n"
		"  --without-secrets  leave token and key files alone (for CI)\n"},
	{"explain", verb_explain, "tell how one request would be judged, and why",
		"postern explain --remote-addr 10.0.0.5 -H 'X-Forwarded-For: 203.0.113.7' --path /login\n"
		"postern explain --config postern.json --json < question.json\n"
		"postern explain --door forward_auth -H 'X-Forwarded-For: 203.0.113.7' \\\n"
		"    -H 'X-Forwarded-Method: GET' -H 'X-Forwarded-Uri: /'\n\n"
		"Offline: every bucket is full and nothing is charged. Without flags that describe a request, a /check body is\n"
		"read from stdin.\n"
		"  --remote-addr A     the client's end of the connection as the caller saw it\n"
		"  -H 'Name: value'    a header line; repeatable, in order\n"
		"  --token-file FILE   the token that the request shows\n"
		"  --method M  --host H  --path P\n"
		"  --door NAME         check (default); forward_auth or auth_request, whose headers supply remote_addr, method\n"
		"                      and path; ext_authz_http, whose headers supply remote_addr and host\n"
		"  --json              the /check answer with the member \"explain\"\n"
		"  --exit-code         exit 5 if the decision is not allow\n"
		SETTINGS_HELP},
	{"token", verb_token, "make a token, or the digest of one",
		"postern token new > tokens/edge.current\n"
		"postern token hash tokens/edge.current\n"
		"postern token hash < tokens/edge.current\n\n"
		"new prints a token of 256 random bits; hash prints the SHA-256 for \"token_sha256\".\n"},
	{"health", verb_health, "ask a running instance whether it is ready",
		"postern health\n"
		"postern health 127.0.0.1:9182\n"
		"postern health unix:/run/postern/ops.sock\n\n"
		"Asks /readyz of the ops listener. Exit 0: ready; 5: not ready; 4: no answer.\n"},
	{"probe", verb_probe, "send a few requests through the real gateway and tell whose address postern believes",
		"postern probe http://shop.example/login\n"
		"postern probe http://127.0.0.1:8443/ --admin unix:/run/postern/admin.sock\n\n"
		"Sends one plain request and one for each header that a client could forge (X-Forwarded-For, Forwarded, X-Real-IP,\n"
		"and the one that is configured), all with a nonce in X-Postern-Probe, and reads back from the admin listener how\n"
		"the client of each was found. They are judged and charged like any request. Exit 0: your clients are told apart\n"
		"and cannot choose their key; 5: they share an address, or can; 4: a server did not answer, or nothing arrived.\n"
		"The gateway must hand X-Postern-Probe on to postern, and be reached by plain HTTP. To send the request another way\n"
		"(over HTTPS, from elsewhere): ask the admin listener for /probe/NONCE, 32 lower-case hex digits of your choice,\n"
		"send it in X-Postern-Probe within a minute, and ask again.\n"
		"  --admin ADDR  the admin listener: HOST:PORT or unix:/path; default 127.0.0.1:9183\n"},
	{"top", verb_top, "show who is refused most and who is busiest",
		"postern top\n"
		"postern top --once\n"
		"postern top unix:/run/postern/admin.sock\n\n"
		"Asks /top of the admin listener (default 127.0.0.1:9183) once a second until ^C.\n"
		"  --once  print once and leave\n"},
	{"version", verb_version, "print the version and those of the libraries", "postern version\n"},
	{"help", verb_help, "tell about the verbs",
		"postern help\n"
		"postern help serve\n"},
};

const size_t n_verbs = sizeof(verbs) / sizeof(verbs[0]);

static const char exit_codes[] = "Exit codes: 0 done; 1 could not do it now; 2 wrong usage; 3 configuration or secret invalid;\n"
				 "            4 instance not reachable; 5 the decision is deny, not ready, or a fault was found\n";

int verb_help(int argc, char **argv)
{
	const struct verb *verb;

	if (argc > 2)
		return verb_usage_error("help", "one verb at most");
	if (argc == 2) {
		verb = verb_find(argv[1]);
		if (verb == NULL)
			return verb_unknown(argv[1]);
		fputs(verb->help, stdout);
		return EXIT_DONE;
	}
	puts("postern answers, beside a gateway: may this request pass, and why?\n\n"
	     "  postern VERB [FLAGS]\n");
	for (size_t i = 0; i < n_verbs; i++)
		printf("  %-14s%s\n", verbs[i].name, verbs[i].summary);
	printf("\n\"postern help VERB\" tells more.\n%s", exit_codes);
	return EXIT_DONE;
}
