-- Signing keys of other homeservers, as they published them.

CREATE TABLE server_key (
  server_name text COLLATE "C" NOT NULL,
  -- `ed25519:version`
  key_id text COLLATE "C" NOT NULL,
  -- Unpadded base64.
  public_key text COLLATE "C" NOT NULL,
  -- Up to when it counts: never more than seven days after it was fetched; for an old key, when it went out of use.
  valid_until bigint NOT NULL,
  -- Out of use: asking again brings nothing new.
  is_old boolean NOT NULL,
  PRIMARY KEY (server_name, key_id)
);
