-- What application services were sent. The queue itself is the stream of events: a row says how far a service has come.

CREATE TABLE appservice_queue (
  appservice_id text COLLATE "C" PRIMARY KEY,
  -- Whatever stands in the stream up to here was delivered, or does not concern the service.
  position bigint NOT NULL,
  -- The number of the last transaction.
  txn_id bigint NOT NULL,
  -- What is under way until it is answered: sent again, it is the same to the byte. NULL when nothing is.
  body text,
  -- The position after it.
  up_to bigint,
  failures integer NOT NULL DEFAULT 0,
  retry_at bigint NOT NULL DEFAULT 0
);
