-- End-to-end encryption: the public keys of devices and users, and who has changed theirs.

-- What a device is known by.
CREATE TABLE device_key (
  user_nid bigint NOT NULL,
  device_id text COLLATE "C" NOT NULL,
  -- Canonical JSON of the uploaded object without `signatures` and `unsigned`: what signatures of it cover.
  json text NOT NULL,
  -- The device's own, of `json`.
  signature text NOT NULL,
  PRIMARY KEY (user_nid, device_id),
  FOREIGN KEY (user_nid, device_id) REFERENCES device ON DELETE CASCADE
);

-- A claimed key stays for a while, so that an upload that is repeated does not bring it back.
CREATE TABLE one_time_key (
  user_nid bigint NOT NULL,
  device_id text COLLATE "C" NOT NULL,
  algorithm text COLLATE "C" NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  -- The order of uploads, which is the order of claims.
  key_nid bigint GENERATED ALWAYS AS IDENTITY,
  -- Canonical JSON of the key: an object with its signatures, or a string.
  json text NOT NULL,
  claimed_at bigint,
  PRIMARY KEY (user_nid, device_id, algorithm, key_id),
  FOREIGN KEY (user_nid, device_id) REFERENCES device ON DELETE CASCADE
);
CREATE INDEX one_time_key_left ON one_time_key (user_nid, device_id, algorithm, key_nid) WHERE claimed_at IS NULL;
CREATE INDEX one_time_key_claimed ON one_time_key (claimed_at) WHERE claimed_at IS NOT NULL;

-- Given when no one-time key is left, any number of times until the device replaces it.
CREATE TABLE fallback_key (
  user_nid bigint NOT NULL,
  device_id text COLLATE "C" NOT NULL,
  algorithm text COLLATE "C" NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  json text NOT NULL,
  is_used boolean NOT NULL,
  PRIMARY KEY (user_nid, device_id, algorithm),
  FOREIGN KEY (user_nid, device_id) REFERENCES device ON DELETE CASCADE
);

CREATE TABLE cross_signing_key (
  user_nid bigint NOT NULL REFERENCES matrix_user,
  -- master, self_signing, user_signing
  usage text COLLATE "C" NOT NULL,
  public_key text COLLATE "C" NOT NULL,
  -- As in device_key.
  json text NOT NULL,
  -- The master key's, of the other two.
  signature text,
  PRIMARY KEY (user_nid, usage)
);

-- Signatures that were added to keys: of devices, by the owner's self-signing key; of master keys, by the owner's devices
-- or by another user's user-signing key.
CREATE TABLE key_signature (
  target_nid bigint NOT NULL REFERENCES matrix_user,
  -- A device id or a public key.
  target text COLLATE "C" NOT NULL,
  signer_nid bigint NOT NULL REFERENCES matrix_user,
  -- `ed25519:` and a device id or a public key.
  signer_key text COLLATE "C" NOT NULL,
  signature text NOT NULL,
  -- Position in the ledger.
  position bigint NOT NULL,
  PRIMARY KEY (target_nid, target, signer_nid, signer_key)
);
CREATE INDEX key_signature_signer ON key_signature (signer_nid, position);

-- The newest change of a user's devices or keys that others see: a position in the ledger, and the version of the list.
CREATE TABLE device_list (
  user_nid bigint PRIMARY KEY REFERENCES matrix_user,
  position bigint NOT NULL
);
CREATE INDEX device_list_position ON device_list (position);
