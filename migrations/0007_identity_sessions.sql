-- Validation sessions of the identity service, and how much was sent to whom.

CREATE TABLE identity_session (
  sid text COLLATE "C" PRIMARY KEY,
  -- SHA-256 of medium, what the client called the address, and client secret: what send attempts are counted for.
  -- NULL once a newer session has taken its place.
  scope_hash bytea UNIQUE,
  -- SHA-256 of the client secret.
  secret_hash bytea NOT NULL,
  medium text COLLATE "C" NOT NULL,
  address text COLLATE "C" NOT NULL,
  next_link text,
  -- SHA-256 of session id and token, of the newest tokens that may have reached the address, newest first, end to end.
  token_hashes bytea NOT NULL,
  -- The highest attempt whose message was taken; -1 before the first.
  send_attempt bigint NOT NULL,
  -- Tokens that were compared and were not the right ones.
  wrong_tokens integer NOT NULL,
  created_at bigint NOT NULL,
  validated_at bigint,
  expires_at bigint NOT NULL
);
CREATE INDEX identity_session_age ON identity_session (expires_at);

-- Buckets of messages: to one address, for one sender, to one country.
CREATE TABLE identity_send_limit (
  -- SHA-256 of what is limited.
  key bytea PRIMARY KEY,
  -- When the bucket will be full again.
  full_at bigint NOT NULL
);
CREATE INDEX identity_send_limit_age ON identity_send_limit (full_at);
