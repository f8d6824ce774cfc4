-- The processes that run this server. For now one of them serves at a time, and others may stand by to take its place.

CREATE TABLE node (
  -- The writer number of its events.
  node integer PRIMARY KEY,
  -- One higher with each process that takes the place. What writes events compares it, so that a process whose place was taken writes none.
  fence bigint NOT NULL,
  -- The process: a random name, which its connections to the database bear too.
  holder text COLLATE "C" NOT NULL,
  -- Where it listens, for operators.
  address text NOT NULL,
  release text NOT NULL,
  -- Its public keys: those of the server and of the identity service.
  keys text NOT NULL,
  -- A proof of the cluster's secret; NULL for a process alone, whose place a lock of its session guards.
  cluster text,
  -- Milliseconds, by the clock of the database.
  since bigint NOT NULL,
  expires_at bigint NOT NULL
);
