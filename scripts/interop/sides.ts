import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Account, type Api, type Json, openApi, register } from '../../test/support/api.ts'
import { type Authority, createAuthority } from '../../test/support/certificate.ts'
import { isAlive, startChildServer } from '../../test/support/child-server.ts'
import { runHearth } from '../../test/support/run-hearth.ts'
import { waitUntil } from '../../test/support/wait.ts'
import { type Gate, startGate } from './gate.ts'
import { type PeerKind, startPeer } from './peer.ts'

/** One of the two homeservers, with a person on it. Both are used by the published interface alone. */
export interface Side {
  readonly label: string
  readonly name: string
  readonly gate: Gate
  readonly api: Api
  readonly person: Person
  /** Ends its process without a word, and starts it again. */
  crash(): Promise<void>
}

export interface Sides {
  readonly hearth: Side
  readonly peer: Side
  /** Makes a backup of Hearth while it runs. What it gives kills Hearth, loses its data, and brings the backup back. */
  backUp(): Promise<() => Promise<void>>
  /** Where to look when something went wrong. */
  readonly logs: () => string
  close(keep: boolean): Promise<void>
}

/** What one person does with one homeserver. */
export interface Person {
  readonly userId: string
  readonly account: Account
  /** @throws ApiError */
  call(method: string, path: string, body?: object): Promise<Json>
  createRoom(body: object): Promise<string>
  /** By an alias or, with a server to ask, by an id. */
  join(room: string, via?: string): Promise<string>
  leave(room: string): Promise<void>
  /** `invite`, `kick`, `ban` or `unban`. */
  to(act: string, room: string, userId: string): Promise<void>
  say(room: string, text: string, tag?: string): Promise<string>
  set(room: string, type: string, content: object, stateKey?: string): Promise<string>
  state(room: string, type: string, stateKey?: string): Promise<Json>
  /** All that this person can read, oldest first. */
  history(room: string): Promise<Json[]>
  /** What a first sync says of a room. */
  synced(room: string, how: 'invite' | 'leave'): Promise<Json | undefined>
}

const enc = encodeURIComponent
const PAGE = 100
const MAX_PAGES = 30
let spoken = 0

async function openPerson(api: Api, localpart: string): Promise<Person> {
  const account = await register(api, localpart)
  const call = (method: string, path: string, body?: object) =>
    api.call(method, path, { token: account.token, timeoutMs: 60_000, ...(body !== undefined && { body }) })
  const at = (room: string) => `/rooms/${enc(room)}`
  return {
    userId: account.userId,
    account,
    call,
    createRoom: async (body) => (await call('POST', '/createRoom', body)).room_id,
    async join(room, via) {
      const query = via === undefined ? '' : `?server_name=${enc(via)}&via=${enc(via)}`
      return (await call('POST', `/join/${enc(room)}${query}`, {})).room_id
    },
    leave: (room) => call('POST', `${at(room)}/leave`, {}),
    to: (act, room, userId) => call('POST', `${at(room)}/${act}`, { user_id: userId }),
    async say(room, text, tag = `say-${spoken++}`) {
      const path = `${at(room)}/send/m.room.message/${enc(tag)}`
      return (await call('PUT', path, { msgtype: 'm.text', body: text })).event_id
    },
    set: async (room, type, content, stateKey = '') =>
      (await call('PUT', `${at(room)}/state/${type}/${enc(stateKey)}`, content)).event_id,
    state: (room, type, stateKey = '') => call('GET', `${at(room)}/state/${type}/${enc(stateKey)}`),
    async history(room) {
      const events: Json[] = []
      let from = ''
      for (let page = 0; page < MAX_PAGES; page++) {
        const { chunk, end } = await call('GET', `${at(room)}/messages?dir=b&limit=${PAGE}${from}`)
        events.push(...chunk)
        if (end === undefined) break
        from = `&from=${enc(end)}`
      }
      return events.reverse()
    },
    async synced(room, how) {
      const filter = { room: { include_leave: true, timeline: { limit: 1 } }, presence: { limit: 0 } }
      const { rooms } = await call('GET', `/sync?timeout=0&filter=${enc(JSON.stringify(filter))}`)
      return rooms?.[how]?.[room]
    },
  }
}

const READY_MS = 60_000

/** Both, each behind a gate with a certificate of an authority that only they trust. */
export async function openSides(kind: PeerKind): Promise<Sides> {
  const authority: Authority = createAuthority()
  const [hearthGate, peerGate] = [await startGate(authority), await startGate(authority)]
  const child = await startChildServer({ serverName: hearthGate.name, env: hearthEnvironment(authority) })
  const other = await startPeer(kind, { name: peerGate.name, caFile: authority.file })
  hearthGate.lead(child.baseUrl)
  peerGate.lead(other.baseUrl)
  const [hearthApi, peerApi] = [openApi(child.baseUrl), openApi(other.baseUrl)]
  const crash = async (end: () => Promise<void>, start: () => Promise<void>, api: Api) => {
    await end()
    await start()
    await waitUntil('an answer', () => api.request('GET', '/_matrix/client/versions').then(isFine, () => false), {
      timeoutMs: READY_MS,
    })
  }
  const hearth: Side = {
    ...{ label: 'Hearth', name: hearthGate.name, gate: hearthGate, api: hearthApi },
    person: await openPerson(hearthApi, 'hanna'),
    crash: () => crash(() => child.kill('SIGKILL'), child.start, hearthApi),
  }
  const peer: Side = {
    ...{ label: kind.label, name: peerGate.name, gate: peerGate, api: peerApi },
    person: await openPerson(peerApi, 'simon'),
    crash: () => crash(() => other.kill('SIGKILL'), other.start, peerApi),
  }
  return {
    ...{ hearth, peer },
    async backUp() {
      const [place, data] = [join(child.dataDir, 'backups'), join(child.dataDir, 'data')]
      const env = {
        ...hearthEnvironment(authority),
        HEARTH__SERVER_NAME: child.serverName,
        HEARTH__DATA_DIR: data,
        HEARTH__LISTEN__PORT: '1',
      }
      const run = async (words: readonly string[]) => {
        const { code, stderr } = await runHearth(words, { directory: child.dataDir, env })
        if (code !== 0) throw new Error(`hearth ${words[0]}: ${stderr}`)
      }
      await run(['backup', place])
      return async () => {
        // Its gate would answer in its name, with an error.
        await child.kill('SIGKILL')
        const postmaster = child.postmasterPid()
        await waitUntil('the end of its Postgres', () => postmaster === undefined || !isAlive(postmaster))
        await rm(data, { recursive: true })
        await run(['restore', place])
        await child.start()
      }
    },
    logs: () => `${other.logFile}\n${child.output()}`,
    async close(keep) {
      await Promise.all([hearthApi.close(), peerApi.close()])
      await other.dispose(keep)
      await child.dispose()
      await Promise.all([hearthGate.close(), peerGate.close()])
      authority.remove()
    },
  }
}

const isFine = ({ status }: { status: number }) => status === 200

const hearthEnvironment = (authority: Authority) => ({
  HEARTH__OUTBOUND__CA_FILE: authority.file,
  HEARTH__OUTBOUND__ALLOW_RANGES: '127.0.0.0/8',
  HEARTH__RATE_LIMITS__ENABLED: 'false',
  HEARTH__PASSWORDS__SCRYPT__LOG2_COST: '10',
  HEARTH__LOG__LEVEL: 'debug',
})
