-- Addresses of accounts, and where they were published.

-- By these people log in and get a new password. Nothing of it is published.
CREATE TABLE user_threepid (
  medium text COLLATE "C" NOT NULL,
  -- In the spelling of core/threepid.ts.
  address text COLLATE "C" NOT NULL,
  user_nid bigint NOT NULL REFERENCES account,
  validated_at bigint NOT NULL,
  added_at bigint NOT NULL,
  UNIQUE (medium, address)
);
CREATE INDEX user_threepid_user ON user_threepid (user_nid);

-- Which identity servers a user's address was bound with through us, so that we can end it there.
CREATE TABLE threepid_bind (
  user_nid bigint NOT NULL REFERENCES account,
  medium text COLLATE "C" NOT NULL,
  address text COLLATE "C" NOT NULL,
  id_server text COLLATE "C" NOT NULL,
  bound_at bigint NOT NULL,
  PRIMARY KEY (user_nid, medium, address, id_server)
);
