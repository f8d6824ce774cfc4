-- When fields of profiles changed, so that clients of sliding sync hear of it (MSC4262): one row for each field that a user of ours has, and
-- for some that were removed.

CREATE TABLE profile_change (
  user_nid bigint NOT NULL,
  name text COLLATE "C" NOT NULL,
  -- In the ledger.
  position bigint NOT NULL,
  PRIMARY KEY (user_nid, name)
);
CREATE INDEX profile_change_position ON profile_change (position);
