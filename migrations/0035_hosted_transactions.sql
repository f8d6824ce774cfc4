-- Transactions that application services in this process have worked through: one that comes again is passed over.

CREATE TABLE hosted_transaction (
  appservice_id text COLLATE "C" NOT NULL,
  txn_id text COLLATE "C" NOT NULL,
  taken_at bigint NOT NULL,
  PRIMARY KEY (appservice_id, txn_id)
);
CREATE INDEX hosted_transaction_age ON hosted_transaction USING brin (taken_at);
