-- What is on its way to other servers. Nothing is written per event: once a second the position up to which all events of ours are
-- delivered or accounted for, and a row for each server that is behind it.
CREATE TABLE federation_sent (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  -- Events of ours up to here have been delivered, except as `federation_destination` says.
  position bigint NOT NULL
);

CREATE TABLE federation_destination (
  server text COLLATE "C" PRIMARY KEY,
  -- The first event that it may not have yet.
  first_unsent bigint NOT NULL,
  failures integer NOT NULL,
  -- When it is tried next, in ms.
  retry_at bigint NOT NULL
);
