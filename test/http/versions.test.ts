import { AutoDiscovery } from 'matrix-js-sdk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Account, type Api, createRoom, openApi, register } from '../support/api.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
let api: Api
let alice: Account
let room: string

beforeAll(async () => {
  server = await startServer()
  api = openApi(server.baseUrl)
  alice = await register(api, 'alice')
  room = encodeURIComponent(await createRoom(api, alice.token, { preset: 'public_chat', name: 'Kitchen' }))
})

afterAll(async () => {
  await api.close()
  await server.close()
})

/** Operations that each release added (the changelogs of the published specification). */
const ADDED: Readonly<Record<string, readonly string[]>> = {
  'v1.1': [
    'POST /keys/device_signing/upload',
    'POST /keys/signatures/upload',
    'GET /room_keys/version',
    'POST /room_keys/version',
    'PUT /room_keys/keys',
    'POST /knock/x',
    'GET /login/sso/redirect/x',
  ],
  'v1.2': [
    'GET /_matrix/client/v1/rooms/x/hierarchy',
    'GET /_matrix/client/v1/register/m.login.registration_token/validity',
  ],
  'v1.3': ['POST /refresh', 'GET /_matrix/client/v1/rooms/x/relations/$y'],
  'v1.4': ['GET /_matrix/client/v1/rooms/x/threads'],
  'v1.6': ['GET /_matrix/client/v1/rooms/x/timestamp_to_event'],
  'v1.7': [
    'POST /_matrix/media/v1/create',
    'PUT /_matrix/media/v3/upload/x/y',
    'POST /_matrix/client/v1/login/get_token',
  ],
  'v1.11': ['GET /_matrix/client/v1/media/config', 'GET /_matrix/client/v1/media/download/x/y'],
  'v1.13': ['POST /rooms/x/report'],
  'v1.14': ['POST /users/x/report'],
  'v1.15': ['GET /_matrix/client/v1/room_summary/x'],
  'v1.16': ['DELETE /profile/x/y'],
  'v1.18': ['GET /_matrix/client/v1/admin/suspend/x'],
  'v1.19': ['GET /_matrix/client/v1/mutual_rooms'],
}

const RELEASES = Array.from({ length: 19 }, (_, index) => `v1.${index + 1}`)

async function isServed(line: string): Promise<boolean> {
  const [method, path] = line.split(' ') as [string, string]
  const { body } = await api.request(method, path, { token: alice.token, ...(method !== 'GET' && { body: {} }) })
  return body?.errcode !== 'M_UNRECOGNIZED'
}

test.each(RELEASES)('C4: %s is named, and the operations that it added are served', async (release) => {
  const { versions } = await api.call('GET', '/_matrix/client/versions')
  expect(versions).toContain(release)
  const lines = ADDED[release] ?? []
  const served = await Promise.all(lines.map(isServed))
  expect(lines.filter((_, index) => !served[index])).toEqual([])
})

test('C4: no release is named of which nobody knows', async () => {
  const { versions } = await api.call('GET', '/_matrix/client/versions')
  expect(versions.filter((name: string) => name.startsWith('v'))).toEqual(RELEASES)
  const older = await api.call('GET', '/_proto/client/versions')
  expect(older.versions.filter((name: string) => name.startsWith('v'))).toEqual([])
})

test('C4: without OAuth, its metadata are answered as by a server that does not know them (release 1.15)', async () => {
  for (const path of ['v1/auth_metadata', 'unstable/org.matrix.msc2965/auth_metadata']) {
    const answer = await api.request('GET', `/_matrix/client/${path}`, { token: alice.token })
    expect(answer).toMatchObject({ status: 404, body: { errcode: 'M_UNRECOGNIZED' } })
  }
})

test('C4: what clients refuse to go without is named: r0.5.0, r0.6.0, r0.6.1 and v1.1', async () => {
  const { versions } = await api.call('GET', '/_matrix/client/versions')
  expect(versions).toEqual(expect.arrayContaining(['r0.5.0', 'r0.6.0', 'r0.6.1', 'v1.1']))
})

test('C4: a client that looks for a server takes this one', async () => {
  const found = await AutoDiscovery.fromDiscoveryConfig({ 'm.homeserver': { base_url: server.baseUrl } })
  expect(found['m.homeserver']).toMatchObject({ state: 'SUCCESS', base_url: server.baseUrl })
})

describe('C4: each declared feature works:', () => {
  const as = (body?: object) => ({ token: alice.token, ...(body && { body }) })
  let sent = 0
  const say = async (text: string, relation?: object): Promise<string> => {
    const content = { msgtype: 'm.text', body: text, ...(relation && { 'm.relates_to': relation }) }
    return (await api.call('PUT', `/rooms/${room}/send/m.room.message/say${++sent}`, as(content))).event_id
  }
  /** Replies in a thread, and gives its bundle. */
  const threadOf = async (root: string) => {
    await say('reply', { rel_type: 'm.thread', event_id: root })
    const { unsigned } = await api.call('GET', `/rooms/${room}/event/${encodeURIComponent(root)}`, as())
    return unsigned['m.relations']['m.thread']
  }
  const refusesInvites = async (type: string, content: object) => {
    const bob = await register(api, `hermit${++sent}`)
    const path = `/user/${encodeURIComponent(bob.userId)}/account_data/${type}`
    await api.call('PUT', path, { token: bob.token, body: content })
    return (
      (await api.request('POST', `/rooms/${room}/invite`, as({ user_id: bob.userId }))).body.errcode ===
      'M_INVITE_BLOCKED'
    )
  }
  const unstableSync = '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync'
  /** What an extension of sliding sync answers. */
  const extension = async (name: string, path = '/_matrix/client/v4/sync') => {
    const event = encodeURIComponent(await say('read'))
    await api.call('POST', `/rooms/${room}/receipt/m.read/${event}`, as({}))
    await api.call(
      'PUT',
      `/rooms/${room}/typing/${encodeURIComponent(alice.userId)}`,
      as({ typing: true, timeout: 9_000 }),
    )
    const rooms = { [decodeURIComponent(room)]: { timeline_limit: 1, required_state: path === unstableSync ? [] : {} } }
    const body = { room_subscriptions: rooms, extensions: { [name]: { enabled: true } } }
    return (await api.call('POST', path, as(body))).extensions[name]
  }
  const works: Readonly<Record<string, () => Promise<unknown>>> = {
    'org.matrix.simplified_msc3575': () => extension('e2ee', unstableSync),
    'org.matrix.msc4186': () => extension('e2ee'),
    'org.matrix.msc4508': () => extension('org.matrix.msc4508.typing'),
    'org.matrix.msc4508.stable': () => extension('typing'),
    'org.matrix.msc4538': () => extension('org.matrix.msc4538.to_device'),
    'org.matrix.msc4543': () => extension('org.matrix.msc4543.e2ee'),
    'org.matrix.msc4548': () => extension('org.matrix.msc4548.account_data'),
    'org.matrix.msc4551': () => extension('org.matrix.msc4551.receipts'),
    'org.matrix.e2e_cross_signing': () => isServed('POST /_matrix/client/unstable/keys/device_signing/upload'),
    'org.matrix.msc2432': () => isServed(`GET /_matrix/client/unstable/org.matrix.msc2432/rooms/${room}/aliases`),
    'org.matrix.msc2285.stable': async () => {
      const { event_id } = await api.call(
        'PUT',
        `/rooms/${room}/send/m.room.message/r1`,
        as({ msgtype: 'm.text', body: 'x' }),
      )
      return api.call('POST', `/rooms/${room}/receipt/m.read.private/${encodeURIComponent(event_id)}`, as({}))
    },
    'org.matrix.msc3827.stable': () =>
      api.call('POST', '/publicRooms', as({ filter: { room_types: ['m.space', null] } })),
    'org.matrix.msc3440.stable': async () => (await threadOf(await say('root'))).count === 1,
    'org.matrix.msc3771': async () => {
      const root = await say('root')
      const { latest_event } = await threadOf(root)
      const path = `/rooms/${room}/receipt/m.read/${encodeURIComponent(latest_event.event_id)}`
      return api.call('POST', path, as({ thread_id: root }))
    },
    'org.matrix.msc3773': async () => {
      const filter = encodeURIComponent(JSON.stringify({ room: { timeline: { unread_thread_notifications: true } } }))
      const bob = await register(api, `reader${++sent}`)
      await api.call('POST', `/rooms/${room}/join`, { token: bob.token, body: {} })
      const root = await say('root')
      await threadOf(root)
      const { rooms } = await api.call('GET', `/sync?timeout=0&filter=${filter}`, { token: bob.token })
      return rooms.join[decodeURIComponent(room)].unread_thread_notifications[root].notification_count === 1
    },
    'org.matrix.msc3856.stable': async () => {
      const root = await say('root')
      await threadOf(root)
      const { chunk } = await api.call('GET', `/_matrix/client/v1/rooms/${room}/threads?limit=1`, as())
      return chunk[0].event_id === root
    },
    'org.matrix.msc3981': async () => {
      const root = await say('root')
      const { latest_event } = await threadOf(root)
      await say('about it', { rel_type: 'm.reference', event_id: latest_event.event_id })
      const path = `/_matrix/client/v1/rooms/${room}/relations/${encodeURIComponent(root)}?recurse=true`
      return (await api.call('GET', path, as())).chunk.length === 2
    },
    'org.matrix.msc3391': async () => {
      const path = `/user/${encodeURIComponent(alice.userId)}/account_data/org.example.x`
      await api.call('PUT', path, as({ x: 1 }))
      await api.call('DELETE', `/_matrix/client/unstable/org.matrix.msc3391${path}`, as())
      return (await api.request('GET', path, as())).status === 404
    },
    'org.matrix.msc3881': async () => {
      const pusher = {
        kind: 'http',
        app_id: 'x',
        pushkey: 'y',
        app_display_name: 'x',
        device_display_name: 'x',
        lang: 'en',
      }
      const data = { url: 'https://push.invalid/_matrix/push/v1/notify' }
      await api.call('POST', '/pushers/set', as({ ...pusher, data, 'org.matrix.msc3881.enabled': false }))
      return (await api.call('GET', '/pushers', as())).pushers[0]['org.matrix.msc3881.enabled'] === false
    },
    'org.matrix.msc3814': async () => {
      const path = '/_matrix/client/unstable/org.matrix.msc3814.v1/dehydrated_device'
      return (await api.request('GET', path, as())).body.errcode === 'M_NOT_FOUND'
    },
    'org.matrix.msc4108': async () => {
      const path = '/_matrix/client/unstable/org.matrix.msc4108/rendezvous'
      const headers = { 'content-type': 'text/plain' }
      return (await fetch(server.baseUrl + path, { method: 'POST', headers, body: 'x' })).status === 201
    },
    'org.matrix.msc4140': async () => {
      const path = `/rooms/${room}/send/m.room.message/d1?org.matrix.msc4140.delay=60000`
      return typeof (await api.call('PUT', path, as({ msgtype: 'm.text', body: 'x' }))).delay_id === 'string'
    },
    'org.matrix.msc4155': () =>
      refusesInvites('org.matrix.msc4155.invite_permission_config', { blocked_servers: ['*'] }),
    'org.matrix.msc4306': async () => {
      const root = await say('followed')
      const path = `/_matrix/client/unstable/io.element.msc4306/rooms/${room}/thread/${encodeURIComponent(root)}/subscription`
      await api.call('PUT', path, as({}))
      const { global } = await api.call('GET', '/pushrules/', as())
      return global.postcontent.every(({ enabled }: { enabled: boolean }) => enabled)
    },
    'org.matrix.msc4380.stable': () => refusesInvites('m.invite_permission_config', { default_action: 'block' }),
    'fi.mau.msc2246.stable': () => api.call('POST', '/_matrix/media/v1/create', as({})),
    'fi.mau.msc2659.stable': () => isServed('POST /_matrix/client/v1/appservice/x/ping'),
    'org.matrix.msc3952_intentional_mentions': async () => {
      const { global } = await api.call('GET', '/pushrules/', as())
      return global.override.some(({ rule_id }: { rule_id: string }) => rule_id === '.m.rule.is_user_mention')
    },
    'org.matrix.msc3916.stable': () => api.call('GET', '/_matrix/client/v1/media/config', as()),
    'uk.tcpip.msc4133.stable': async () => {
      const path = `/profile/${encodeURIComponent(alice.userId)}/org.example.pronouns`
      await api.call('PUT', path, as({ 'org.example.pronouns': 'she' }))
      return (await api.call('GET', path, as()))['org.example.pronouns'] === 'she'
    },
    'uk.half-shot.msc2666.query_mutual_rooms': () =>
      api.call('GET', '/_matrix/client/unstable/uk.half-shot.msc2666/user/mutual_rooms?user_id=@a:localhost', as()),
    'uk.half-shot.msc2666.query_mutual_rooms.stable': () =>
      api.call('GET', '/_matrix/client/v1/mutual_rooms?user_id=@a:localhost', as()),
    'com.beeper.msc4169': async () => {
      const { event_id } = await api.call(
        'PUT',
        `/rooms/${room}/send/m.room.message/b1`,
        as({ msgtype: 'm.text', body: 'x' }),
      )
      await api.call('PUT', `/rooms/${room}/send/m.room.redaction/b2`, as({ redacts: event_id }))
      const event = await api.call('GET', `/rooms/${room}/event/${encodeURIComponent(event_id)}`, as())
      return Object.keys(event.content).length === 0
    },
    'org.matrix.msc4354': async () => {
      const path = `/rooms/${room}/send/m.room.message/sticky?org.matrix.msc4354.sticky_duration_ms=60000`
      const { event_id } = await api.call('PUT', path, as({ msgtype: 'm.text', body: 'x' }))
      const event = await api.call('GET', `/rooms/${room}/event/${encodeURIComponent(event_id)}`, as())
      return event.msc4354_sticky.duration_ms === 60_000
    },
  }

  test('C4: no feature is declared without being looked at here', async () => {
    const { unstable_features } = await api.call('GET', '/_matrix/client/versions')
    expect(Object.keys(unstable_features).sort()).toEqual(Object.keys(works).sort())
    expect(new Set(Object.values(unstable_features))).toEqual(new Set([true]))
  })

  test.each(Object.entries(works))('C4: %s', async (_name, work) => {
    expect(await work()).toBeTruthy()
  })
})

test('C4: im.nheko.summary is an alias of the room summary', async () => {
  const whole = await api.call('GET', `/_matrix/client/v1/room_summary/${room}`, { token: alice.token })
  expect(whole).toMatchObject({ name: 'Kitchen' })
  for (const path of [`summary/${room}`, `rooms/${room}/summary`]) {
    expect(await api.call('GET', `/_matrix/client/unstable/im.nheko.summary/${path}`, { token: alice.token })).toEqual(
      whole,
    )
  }
})
