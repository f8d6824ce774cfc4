-- Rooms that application services list, each for one of their networks.

CREATE TABLE appservice_room (
  appservice_id text COLLATE "C" NOT NULL,
  network_id text COLLATE "C" NOT NULL,
  room_nid bigint NOT NULL,
  PRIMARY KEY (appservice_id, network_id, room_nid)
);
CREATE INDEX appservice_room_room ON appservice_room (room_nid);
