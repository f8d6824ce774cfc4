-- Rooms that application services list, each for one of their networks; and what services in this process have worked through.

CREATE TABLE appservice_room (
  appservice_id text COLLATE "C" NOT NULL,
  network_id text COLLATE "C" NOT NULL,
  room_nid bigint NOT NULL,
  PRIMARY KEY (appservice_id, network_id, room_nid)
);
CREATE INDEX appservice_room_room ON appservice_room (room_nid);

-- Transactions of services in this process: one that comes again is passed over.
CREATE TABLE hosted_transaction (
  appservice_id text COLLATE "C" NOT NULL,
  txn_id text COLLATE "C" NOT NULL,
  taken_at bigint NOT NULL,
  PRIMARY KEY (appservice_id, txn_id)
);
CREATE INDEX hosted_transaction_age ON hosted_transaction USING brin (taken_at);
