-- Validation sessions that were begun with an identity server for an account here.
CREATE TABLE delegated_session (
  -- SHA-256 of the session's id and its client secret, which is kept nowhere.
  key bytea PRIMARY KEY,
  sid text COLLATE "C" NOT NULL,
  id_server text COLLATE "C" NOT NULL,
  purpose text COLLATE "C" NOT NULL,
  medium text COLLATE "C" NOT NULL,
  address text COLLATE "C" NOT NULL,
  -- The access token for the identity server, encrypted by the client secret.
  token bytea NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX delegated_session_expiry ON delegated_session (expires_at);
