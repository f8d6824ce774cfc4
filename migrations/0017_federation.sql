-- What was answered to the transactions of other servers: a transaction that is sent again gets the same.
CREATE TABLE federation_txn (
  -- sha256 of the server's name and the transaction's id.
  txn_hash bytea PRIMARY KEY,
  answer text NOT NULL,
  received_at bigint NOT NULL
);
CREATE INDEX federation_txn_age ON federation_txn USING brin (received_at);
