-- Push rules ask who follows a thread when something is said in it.

CREATE INDEX thread_subscription_followers ON thread_subscription (room_nid, root_id) WHERE is_subscribed;
