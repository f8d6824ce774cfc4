-- Access tokens that end by themselves, the tokens by which clients renew them, and the policies that people accepted at registration.
ALTER TABLE access_token
  -- NULL: it does not end by itself.
  ADD COLUMN expires_at bigint,
  -- SHA-256 of the refresh token by which it was made. It stays good until this one is used.
  ADD COLUMN renewed_by bytea;

-- Per device there are one or two that are good: the last that was used, for whom the answer did not reach, and its successor.
CREATE TABLE refresh_token (
  -- SHA-256 of the token; the token itself is kept nowhere.
  token_hash bytea PRIMARY KEY,
  user_nid bigint NOT NULL,
  device_id text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  -- When its successor was used, and it became worthless. It is kept for a while, so that its use is noticed: by a thief or of what he took.
  ended_at bigint,
  FOREIGN KEY (user_nid, device_id) REFERENCES device ON DELETE CASCADE
);
CREATE INDEX refresh_token_device ON refresh_token (user_nid, device_id);
CREATE INDEX refresh_token_ended ON refresh_token (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE accepted_policy (
  user_nid bigint NOT NULL REFERENCES account,
  -- Of the policy in its first language; id and version are in it, or it is the operator's own.
  url text COLLATE "C" NOT NULL,
  accepted_at bigint NOT NULL,
  PRIMARY KEY (user_nid, url)
);
