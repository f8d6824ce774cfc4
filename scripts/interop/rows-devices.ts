import { crossSigner, deviceMaker } from '../../test/keys/key-maker.ts'
import { type Json, PASSWORD } from '../../test/support/api.ts'
import { bothWays, meet, type Row } from './row.ts'
import { expect, until } from './seen.ts'
import type { Side } from './sides.ts'

const enc = encodeURIComponent
const ROOM_VERSION = '10'
const MESSAGES = 20

const keysOf = async (by: Side, of: Side): Promise<Json> => {
  const { userId } = of.person
  const { device_keys } = await by.person.call('POST', '/keys/query', { device_keys: { [userId]: [] } })
  return device_keys[userId]?.[of.person.account.deviceId]
}

/** What a device brings for encryption; a second call replaces it. */
async function upload(side: Side, oneTimeKeys: number) {
  const maker = deviceMaker(side.person.account)
  const [device_keys, one_time_keys] = [maker.identity(), maker.keys(oneTimeKeys)]
  await side.person.call('POST', '/keys/upload', { device_keys, one_time_keys })
  return { device_keys, one_time_keys }
}

const synced = (by: Side, since?: string, filter: object = {}) => {
  const from = since === undefined ? '' : `&since=${enc(since)}`
  return by.person.call('GET', `/sync?timeout=500&filter=${enc(JSON.stringify(filter))}${from}`)
}

const now = async (side: Side): Promise<string> => (await synced(side)).next_batch

/** Asks for what is new again and again, and gives what `take` finds in all of it. */
async function untilSynced<T>(what: string, by: Side, since: string, take: (sync: Json) => T | undefined): Promise<T> {
  let from = since
  return until(`${what} on ${by.label}`, async () => {
    const sync = await synced(by, from)
    from = sync.next_batch
    return take(sync)
  })
}

async function toDevices(host: Side, guest: Side): Promise<void> {
  const { userId, account } = guest.person
  const since = await now(guest)
  for (let n = 0; n < MESSAGES; n++) {
    const messages = { [userId]: { [account.deviceId]: { n } } }
    await host.person.call('PUT', `/sendToDevice/m.test/to-device-${host.label}-${n}`, { messages })
  }
  const got: number[] = []
  await untilSynced(`${MESSAGES} messages to a device`, guest, since, (sync) => {
    for (const { type, content, sender } of sync.to_device?.events ?? []) {
      if (type === 'm.test' && sender === host.person.userId) got.push(content.n)
    }
    return got.length >= MESSAGES ? true : undefined
  })
  expect(
    'they are in order, none lost and none twice',
    got.join() === [...got.keys()].join() && got.length === MESSAGES,
  )
}

/** What devices tell each other through their servers. */
export const deviceRows: readonly Row[] = [
  ...bothWays(
    '{guest} asks for the keys of a device of {host}, and learns of changes',
    async (host, guest) => {
      await meet(host, guest, ROOM_VERSION)
      const { device_keys: first } = await upload(host, 0)
      const isKnown = (key: Json) =>
        until(`the key of a device on ${guest.label}`, async () => {
          return JSON.stringify((await keysOf(guest, host))?.keys) === JSON.stringify(key.keys)
        })
      await isKnown(first)
      const since = await now(guest)
      const signer = crossSigner(host.person.userId)
      const [master] = Object.values((signer.body() as Json).master_key.keys)
      await authenticated(host, '/keys/device_signing/upload', signer.body())
      await untilSynced('a changed list of devices', guest, since, ({ device_lists }) =>
        device_lists?.changed?.includes(host.person.userId) ? true : undefined,
      )
      await until(`the master key on ${guest.label}`, async () => {
        const { userId } = host.person
        const { master_keys } = await guest.person.call('POST', '/keys/query', { device_keys: { [userId]: [] } })
        return Object.values(master_keys?.[userId]?.keys ?? {})[0] === master
      })
    },
    'once',
  ),
  ...bothWays(
    '{guest} claims one-time keys of {host}: each once',
    async (host, guest) => {
      const { one_time_keys } = await upload(host, 5)
      const { userId, account } = host.person
      const body = { one_time_keys: { [userId]: { [account.deviceId]: 'signed_curve25519' } } }
      const claims = await Promise.all(namesOf(one_time_keys).map(() => guest.person.call('POST', '/keys/claim', body)))
      const given = claims.flatMap(({ one_time_keys: all }) => Object.keys(all[userId]?.[account.deviceId] ?? {}))
      expect('each key was given once', given.toSorted().join() === namesOf(one_time_keys).toSorted().join())
      const none = await guest.person.call('POST', '/keys/claim', body)
      expect('then there is none', Object.keys(none.one_time_keys[userId]?.[account.deviceId] ?? {}).length === 0)
    },
    'once',
  ),
  ...bothWays(
    `${MESSAGES} messages of {host} to a device of {guest}: in order, none lost, none twice`,
    toDevices,
    'once',
  ),
  ...bothWays(
    '{guest} sees that somebody on {host} types, and stops',
    async (host, guest) => {
      const room = await meet(host, guest, ROOM_VERSION)
      const since = await now(guest)
      const typing = (body: object) =>
        host.person.call('PUT', `/rooms/${enc(room)}/typing/${enc(host.person.userId)}`, body)
      const seen = (wanted: boolean) => (sync: Json) => {
        const events: Json[] = sync.rooms?.join?.[room]?.ephemeral?.events ?? []
        const typing = events.findLast(({ type }) => type === 'm.typing')
        return typing?.content.user_ids.includes(host.person.userId) === wanted ? true : undefined
      }
      await typing({ typing: true, timeout: 30_000 })
      await untilSynced('typing', guest, since, seen(true))
      const then = await now(guest)
      await typing({ typing: false })
      await untilSynced('no typing', guest, then, seen(false))
    },
    'once',
  ),
  ...bothWays(
    '{guest} sees what somebody on {host} has read',
    async (host, guest) => {
      const room = await meet(host, guest, ROOM_VERSION)
      const eventId = await guest.person.say(room, 'to be read')
      await until(`the message on ${host.label}`, () =>
        host.person.call('GET', `/rooms/${enc(room)}/event/${enc(eventId)}`).catch(() => undefined),
      )
      const since = await now(guest)
      await host.person.call('POST', `/rooms/${enc(room)}/receipt/m.read/${enc(eventId)}`, {})
      await untilSynced('a receipt', guest, since, (sync) => {
        const events: Json[] = sync.rooms?.join?.[room]?.ephemeral?.events ?? []
        return events.find(
          ({ type, content }) => type === 'm.receipt' && content[eventId]?.['m.read']?.[host.person.userId],
        )
      })
    },
    'once',
  ),
  ...bothWays(
    '{guest} sees the presence of somebody on {host}',
    async (host, guest) => {
      await meet(host, guest, ROOM_VERSION)
      const since = await now(guest)
      const { userId } = host.person
      const status = `by the fire, ${host.label}`
      await host.person.call('PUT', `/presence/${enc(userId)}/status`, { presence: 'online', status_msg: status })
      await untilSynced('presence', guest, since, ({ presence }) =>
        (presence?.events ?? []).find(
          ({ sender, content }: Json) => sender === userId && content.status_msg === status,
        ),
      )
    },
    'once',
  ),
]

const namesOf = (keys: object): string[] => Object.keys(keys)

/** Asks, and answers the challenge with the password. */
async function authenticated(side: Side, path: string, body: object): Promise<void> {
  const { api, person } = side
  const { status, body: challenge } = await api.request('POST', `/_matrix/client/v3${path}`, {
    token: person.account.token,
    body,
  })
  if (status === 200) return
  const auth = {
    ...{ type: 'm.login.password', session: challenge.session, password: PASSWORD },
    identifier: { type: 'm.id.user', user: person.userId },
  }
  await person.call('POST', path, { ...body, auth })
}
