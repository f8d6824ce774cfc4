-- Tokens by which a client logs in once, and sign-in through OpenID Connect providers.

CREATE TABLE login_token (
  -- SHA-256 of the token; the token itself is kept nowhere.
  token_hash bytea PRIMARY KEY,
  user_nid bigint NOT NULL REFERENCES account,
  expires_at bigint NOT NULL
);
CREATE INDEX login_token_age ON login_token (expires_at);
CREATE INDEX login_token_user ON login_token (user_nid);

-- Whose account a person at a provider has here. It stays when the account is deactivated, so that nobody gets another by it.
CREATE TABLE user_external_id (
  -- Its id in the configuration.
  provider text COLLATE "C" NOT NULL,
  -- `sub`, which names the person at that provider for ever.
  subject text COLLATE "C" NOT NULL,
  user_nid bigint NOT NULL REFERENCES account,
  created_at bigint NOT NULL,
  PRIMARY KEY (provider, subject)
);
CREATE INDEX user_external_id_user ON user_external_id (user_nid);

-- Sign-ins under way. Nothing in here can finish one: that takes the flow's id and the browser's cookie, which are kept as hashes.
CREATE TABLE sso_flow (
  -- SHA-256 of the id, which the provider hands back as `state`.
  flow_hash bytea PRIMARY KEY,
  -- SHA-256 of the secret in the cookie of the browser that began it.
  browser_hash bytea NOT NULL,
  provider text COLLATE "C" NOT NULL,
  -- JSON: what the person signs in for.
  purpose text NOT NULL,
  -- JSON: who came back and has to choose a user name; NULL while the person is at the provider.
  person text,
  started_at bigint NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX sso_flow_age ON sso_flow (expires_at);
