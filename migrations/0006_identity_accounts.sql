-- OpenID tokens of the homeserver; accounts, accepted terms and short-term keys of the identity service.

-- Prove to others, for an hour, who a user of this server is.
CREATE TABLE openid_token (
  -- SHA-256 of the token; the token itself is kept nowhere.
  token_hash bytea PRIMARY KEY,
  user_nid bigint NOT NULL REFERENCES account,
  expires_at bigint NOT NULL
);
CREATE INDEX openid_token_age ON openid_token (expires_at);

-- Users of the identity service, of any homeserver.
CREATE TABLE identity_account (
  user_id text COLLATE "C" PRIMARY KEY,
  created_at bigint NOT NULL
);

CREATE TABLE identity_token (
  token_nid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- SHA-256 of the token.
  token_hash bytea NOT NULL UNIQUE,
  user_id text COLLATE "C" NOT NULL REFERENCES identity_account ON DELETE CASCADE,
  created_at bigint NOT NULL,
  -- Within some minutes.
  used_at bigint NOT NULL
);
CREATE INDEX identity_token_user ON identity_token (user_id, token_nid);
CREATE INDEX identity_token_age ON identity_token (used_at);

-- Every URL that a user accepted; also of policies that are no longer, or never were, asked for.
CREATE TABLE identity_accepted_url (
  user_id text COLLATE "C" NOT NULL REFERENCES identity_account ON DELETE CASCADE,
  url text COLLATE "C" NOT NULL,
  accepted_at bigint NOT NULL,
  PRIMARY KEY (user_id, url)
);

-- Public halves of the keys made for invitations. The private halves are in the mails and nowhere else.
CREATE TABLE identity_ephemeral_key (
  -- Unpadded base64, standard alphabet.
  public_key text COLLATE "C" PRIMARY KEY,
  created_at bigint NOT NULL,
  -- NULL: never.
  expires_at bigint
);
