/* The friend of the story: matrix-js-sdk in a page, with all that it can do. */

import * as sdk from 'matrix-js-sdk'

window.sdk = sdk

/** Logs in, and follows everything with threads. */
window.enter = async (baseUrl, user, password) => {
  const identifier = { type: 'm.id.user', user }
  const session = await sdk.createClient({ baseUrl }).loginRequest({ type: 'm.login.password', identifier, password })
  const client = sdk.createClient({
    ...{ baseUrl, accessToken: session.access_token, userId: session.user_id, deviceId: session.device_id },
    store: new sdk.MemoryStore(),
  })
  await client.startClient({ initialSyncLimit: 20, threadSupport: true, lazyLoadMembers: true, pollTimeout: 10_000 })
  window.client = client
}

/** The text of what happened in a room, newest last. */
window.timeline = (roomId) =>
  (window.client.getRoom(roomId)?.getLiveTimeline().getEvents() ?? []).map((event) => ({
    id: event.getId(),
    type: event.getType(),
    sender: event.getSender(),
    body: event.getContent().body,
    redacted: event.isRedacted(),
  }))

/** Calls a method of the client. What comes back is data, or nothing. */
window.ask = async (method, args) => {
  const result = await window.client[method](...args)
  return result?.constructor === Object ? JSON.parse(JSON.stringify(result)) : null
}
