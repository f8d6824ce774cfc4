-- What application services are sent beside events: messages to devices, receipts, presence, changed device lists, counts of keys.

CREATE TABLE appservice_news (
  appservice_id text COLLATE "C" NOT NULL,
  -- The order in which it is sent. All is written in commits of the ledger: who has seen a number has seen all before it.
  nid bigint GENERATED ALWAYS AS IDENTITY,
  -- message, receipt, presence, device_list, keys
  kind text COLLATE "C" NOT NULL,
  -- What a newer one of the same kind takes the place of; of a message, its sender.
  name text COLLATE "C" NOT NULL,
  -- JSON of what is sent; '' where that is found out when it is sent.
  content text NOT NULL,
  noted_at bigint NOT NULL,
  PRIMARY KEY (appservice_id, nid)
);
CREATE UNIQUE INDEX appservice_news_name ON appservice_news (appservice_id, kind, name) WHERE kind <> 'message';
CREATE INDEX appservice_news_age ON appservice_news USING brin (noted_at);

-- Up to which of them a service has answered, and up to which the transaction under way goes.
ALTER TABLE appservice_queue ADD COLUMN news_position bigint NOT NULL DEFAULT 0;
ALTER TABLE appservice_queue ADD COLUMN news_up_to bigint;
