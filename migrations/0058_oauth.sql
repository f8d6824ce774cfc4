-- Signing in by OAuth 2.0: clients, requests under way, which sessions clients got by it, and people who are signed in to the pages.

CREATE TABLE oauth_client (
  client_id text COLLATE "C" PRIMARY KEY,
  -- SHA-256 of the metadata: clients register anew each time, and get the same id.
  digest bytea NOT NULL UNIQUE,
  -- JSON
  metadata text NOT NULL,
  -- Where it was registered from, until somebody signs in with it.
  network text COLLATE "C",
  created_at bigint NOT NULL,
  -- The last sign-in; NULL: none yet.
  used_at bigint
);
CREATE INDEX oauth_client_unused ON oauth_client (created_at) WHERE used_at IS NULL;
CREATE INDEX oauth_client_network ON oauth_client (network) WHERE used_at IS NULL;

-- Authorisations under way: interactions, grants, codes.
CREATE TABLE oauth_state (
  model text COLLATE "C" NOT NULL,
  -- SHA-256 of the id, which is the secret.
  id_hash bytea NOT NULL,
  -- JSON
  payload text NOT NULL,
  grant_hash bytea,
  -- SHA-256 of what a person types in.
  user_code_hash bytea UNIQUE,
  consumed_at bigint,
  -- When a device asked last.
  polled_at bigint,
  expires_at bigint NOT NULL,
  PRIMARY KEY (model, id_hash)
);
CREATE INDEX oauth_state_grant ON oauth_state (grant_hash) WHERE grant_hash IS NOT NULL;
CREATE INDEX oauth_state_age ON oauth_state (expires_at);

-- The devices whose session came from a grant. Other devices logged in by the older interface.
CREATE TABLE oauth_session (
  user_nid bigint NOT NULL,
  device_id text COLLATE "C" NOT NULL,
  client_id text COLLATE "C" NOT NULL REFERENCES oauth_client,
  scope text COLLATE "C" NOT NULL,
  -- SHA-256 of the grant: if its code is used again, the session ends.
  grant_hash bytea NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (user_nid, device_id),
  FOREIGN KEY (user_nid, device_id) REFERENCES device ON DELETE CASCADE
);
CREATE INDEX oauth_session_client ON oauth_session (client_id);
CREATE INDEX oauth_session_grant ON oauth_session (grant_hash);

-- Browsers in which somebody is signed in to this server's pages.
CREATE TABLE web_session (
  -- SHA-256 of the secret in the cookie.
  session_hash bytea PRIMARY KEY,
  user_nid bigint NOT NULL REFERENCES account,
  -- SHA-256 of the password's hash: another password ends the session.
  password_stamp bytea NOT NULL,
  created_at bigint NOT NULL,
  -- When the person last proved who they are.
  proven_at bigint NOT NULL,
  used_at bigint NOT NULL
);
CREATE INDEX web_session_user ON web_session (user_nid);
CREATE INDEX web_session_age ON web_session (used_at);

-- Who has allowed, on the account page, that their cross-signing keys are replaced once.
CREATE TABLE cross_signing_approval (
  user_nid bigint PRIMARY KEY REFERENCES account,
  expires_at bigint NOT NULL
);
