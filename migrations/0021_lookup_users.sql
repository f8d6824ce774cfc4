-- A lookup reads the users of hashes from the index of hashes alone.

ALTER TABLE identity_lookup_hash ADD COLUMN user_id text COLLATE "C";
UPDATE identity_lookup_hash h SET user_id = b.user_id FROM identity_binding b WHERE b.binding_nid = h.binding_nid;
DELETE FROM identity_lookup_hash WHERE user_id IS NULL;
ALTER TABLE identity_lookup_hash DROP CONSTRAINT identity_lookup_hash_pkey;
ALTER TABLE identity_lookup_hash
  ALTER COLUMN user_id SET NOT NULL,
  DROP COLUMN binding_nid,
  ADD PRIMARY KEY (pepper_nid, hash) INCLUDE (user_id);
