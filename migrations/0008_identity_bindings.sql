-- Bindings of the identity service, their hashes for lookup, and invitations to addresses that nobody has bound yet.

CREATE TABLE identity_binding (
  -- Stays when the address is bound anew, to whomever.
  binding_nid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  medium text COLLATE "C" NOT NULL,
  -- In the spelling of core/threepid.ts.
  address text COLLATE "C" NOT NULL,
  -- Without an index: nobody may ask for the addresses of a user.
  user_id text COLLATE "C" NOT NULL,
  bound_at bigint NOT NULL,
  UNIQUE (medium, address)
);

-- What addresses are hashed with. There is always one current pepper, and a next one while a rotation is under way.
CREATE TABLE identity_pepper (
  pepper_nid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pepper text COLLATE "C" NOT NULL UNIQUE,
  standing text NOT NULL CHECK (standing IN ('next', 'current', 'old')),
  -- When it became what it is.
  since bigint NOT NULL,
  -- Bindings up to this one have their hash. Later ones get it as they are made.
  hashed_to bigint NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX identity_pepper_standing ON identity_pepper (standing) WHERE standing <> 'old';
INSERT INTO identity_pepper (pepper, standing, since)
  VALUES (replace(gen_random_uuid()::text, '-', ''), 'current', floor(extract(epoch FROM now()) * 1000)::bigint);

-- The hash of every binding under the current and the next pepper. One whose binding is gone finds nothing.
CREATE TABLE identity_lookup_hash (
  pepper_nid bigint NOT NULL,
  -- SHA-256 of address, medium and pepper, with spaces between.
  hash bytea NOT NULL,
  binding_nid bigint NOT NULL,
  PRIMARY KEY (pepper_nid, hash)
);

-- How many addresses a user, or a network address without one, has looked up.
CREATE TABLE identity_lookup_quota (
  who text COLLATE "C" PRIMARY KEY,
  -- The start of the day that is counted.
  since bigint NOT NULL,
  used bigint NOT NULL
);
CREATE INDEX identity_lookup_quota_age ON identity_lookup_quota (since);

-- Invitations that a homeserver is to be told of, all those of one address together, because it was bound.
CREATE TABLE identity_delivery (
  delivery_nid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  medium text COLLATE "C" NOT NULL,
  address text COLLATE "C" NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  -- JSON: the association as it was signed.
  association text NOT NULL,
  created_at bigint NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  -- NULL: given up.
  due_at bigint
);
CREATE INDEX identity_delivery_due ON identity_delivery (due_at);
CREATE INDEX identity_delivery_address ON identity_delivery (medium, address);

CREATE TABLE identity_invite (
  invite_nid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- Sent to homeservers as it is, so it cannot be kept as a hash.
  token text COLLATE "C" NOT NULL UNIQUE,
  medium text COLLATE "C" NOT NULL,
  address text COLLATE "C" NOT NULL,
  room_id text COLLATE "C" NOT NULL,
  sender text COLLATE "C" NOT NULL,
  display_name text NOT NULL,
  -- The ephemeral key made for it; its private half is in the mail alone.
  public_key text COLLATE "C" NOT NULL,
  -- JSON: what else came with the request.
  details text NOT NULL,
  created_at bigint NOT NULL,
  -- NULL: never.
  expires_at bigint,
  -- Set when the address was bound.
  delivery_nid bigint REFERENCES identity_delivery ON DELETE SET NULL,
  -- When the homeserver took it. It is never delivered again.
  delivered_at bigint
);
CREATE INDEX identity_invite_waiting ON identity_invite (medium, address) WHERE delivered_at IS NULL;
CREATE INDEX identity_invite_delivery ON identity_invite (delivery_nid) WHERE delivery_nid IS NOT NULL;
CREATE INDEX identity_invite_end ON identity_invite (expires_at);
CREATE INDEX identity_invite_delivered ON identity_invite (delivered_at);
