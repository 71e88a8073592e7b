-- SPDX-License-Identifier: MIT
-- Asks postern about a request, over HAProxy's own HTTP client (HAProxy 2.6 and later, built with Lua). In a frontend:
--
--	http-request lua.postern http://127.0.0.1:9180 peer closed
--
--	1. where postern's http listener is; a Unix socket is written unix@/run/postern/http.sock
--	2. peer: X-Forwarded-For of the client's request is not passed on; chain: it is, since a hop of yours wrote it
--	3. closed: while postern is away the client gets 503; open: requests pass unjudged
--
-- Caution: HAProxy 2.6 asks up to four times where postern closes the connection or does not answer in time.

local TIMEOUT_MS = 500
-- HAProxy 2.6 and later hold tune.http.maxhdr (101) lines of a question and write past the end of that room when there are more: a
-- client's long list of headers would end HAProxy. Lower it with tune.http.maxhdr; four of the lines are our own.
local LINES_MAX = 90
local KEY = nil -- the key of caller_key_file, if there is one

-- Never passed on: they belong to the connection, tell of a body that does not come, or are the door's own.
local DROPPED = {}
for _, name in ipairs({ "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
	"content-length", "expect", "host", "x-forwarded-for", "x-forwarded-method", "x-forwarded-uri", "x-forwarded-host",
	"x-forwarded-proto", "x-postern-key", "x-postern-identity", "x-postern-client" }) do
	DROPPED[name] = true
end

-- HAProxy's tables of lines begin at 0, those that its HTTP client takes at 1.
local function lines(values)
	local copy = {}
	local i = 0
	while values ~= nil and values[i] ~= nil do
		copy[#copy + 1] = values[i]
		i = i + 1
	end
	return copy
end

local function question(txn, chain)
	local received = txn.http:req_get_headers()
	local headers = {}
	local forwarded = chain and lines(received["x-forwarded-for"]) or {}
	local count = #forwarded
	for name, values in pairs(received) do
		if not DROPPED[name] then
			headers[name] = lines(values)
			count = count + #headers[name]
		end
	end
	if count > LINES_MAX then
		return nil
	end
	forwarded[#forwarded + 1] = txn.sf:src() -- HAProxy's own entry, always the last
	headers["x-forwarded-for"] = forwarded
	headers["x-forwarded-method"] = { txn.sf:method() }
	headers["x-forwarded-uri"] = { txn.sf:pathq() }
	headers["host"] = { "postern" }
	local host = lines(received["host"])
	if host[1] ~= nil then
		headers["x-forwarded-host"] = { host[1] }
	end
	if KEY ~= nil then
		headers["x-postern-key"] = { KEY }
	end
	return headers
end

local TOO_LARGE = { status = 431, headers = { ["content-type"] = { [0] = "application/json" } }, body = '{"error": "too_many_headers"}\n' }

local function ask(txn, where, chain)
	local headers = question(txn, chain)
	if headers == nil then
		return TOO_LARGE
	end
	local request = { url = where .. "/forward-auth", headers = headers, timeout = TIMEOUT_MS }
	if where:sub(1, 5) == "unix@" then
		request.url = "http://postern/forward-auth"
		request.dst = where
	end
	return core.httpclient():get(request)
end

local function value(answer, name)
	local values = answer.headers and answer.headers[name]
	return values and values[0]
end

-- What a refused client is shown of postern's answer.
local SHOWN = { "content-type", "cache-control", "retry-after", "ratelimit-policy", "ratelimit", "www-authenticate",
	"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset" }

local function refuse(txn, status, answer)
	local reply = txn:reply({ status = status })
	for _, name in ipairs(SHOWN) do
		local text = value(answer, name)
		if text ~= nil then
			reply:add_header(name, text)
		end
	end
	reply:set_body(answer.body or "")
	txn:done(reply)
end

local UNAVAILABLE = { headers = { ["content-type"] = { [0] = "application/json" } }, body = '{"error": "unavailable"}\n' }

core.register_action("postern", { "http-req" }, function(txn, where, forwarded, away)
	local answer = ask(txn, where, forwarded == "chain")
	local status = answer and answer.status or 503
	local http = txn.http

	if status ~= 200 and status ~= 401 and status ~= 403 and status ~= 429 and status ~= 431 then
		if away ~= "open" then
			refuse(txn, 503, UNAVAILABLE)
		end
		answer = {}
	elseif status ~= 200 then
		refuse(txn, status, answer)
	end

	-- A client's own copies are gone, also in the spellings that applications of CGI's kind (WSGI, PHP) take for the same;
	-- and the next hop is not told to drop ours.
	for name in pairs(http:req_get_headers()) do
		if name:gsub("_", "-"):sub(1, 10) == "x-postern-" then
			http:req_del_header(name)
		end
	end
	http:req_rep_value("Connection", "[Xx]-[Pp][Oo][Ss][Tt][Ee][Rr][Nn]-.*", "x-none")
	local identity = value(answer, "x-postern-identity") or ""
	local client = value(answer, "x-postern-client") or ""
	http:req_set_header("X-Postern-Identity", identity)
	http:req_set_header("X-Postern-Client", client)
	-- Authorization goes on unless it was what proved one of our services (X-Internal-Token comes first), or looks like a token of ours.
	local sent = http:req_get_headers()
	local ours = identity ~= "" and sent["x-internal-token"] == nil
	for _, login in ipairs(lines(sent["authorization"])) do
		ours = ours or login:lower():find("^%s*bearer%s+postern_") ~= nil
	end
	if ours then
		http:req_del_header("Authorization")
	end
	http:req_del_header("X-Internal-Token")
	-- Exactly one believed address for whoever comes next; none when it could not be decided.
	http:req_del_header("X-Forwarded-For")
	if client ~= "" then
		http:req_add_header("X-Forwarded-For", client)
	end
	-- For the allowed client; see http-after-response.
	txn:set_var("txn.postern_policy", value(answer, "ratelimit-policy") or "")
	txn:set_var("txn.postern_ratelimit", value(answer, "ratelimit") or "")
end, 3)
