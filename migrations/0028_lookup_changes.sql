-- Lookups are answered from memory, which follows the changes of bindings in the order of their commits.

-- How many changes there were. Its one row stays locked until the end of a transaction that changes bindings.
CREATE TABLE identity_lookup_version (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  version bigint NOT NULL
);
INSERT INTO identity_lookup_version (version) VALUES (0);

-- What the latest of them did to the hashes under the current and the next pepper.
CREATE TABLE identity_lookup_change (
  version bigint NOT NULL,
  pepper_nid bigint NOT NULL,
  hash bytea NOT NULL,
  -- NULL: nobody any more.
  user_id text COLLATE "C",
  PRIMARY KEY (version, pepper_nid)
);
