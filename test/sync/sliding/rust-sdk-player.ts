import type { Api, Json } from '../../support/api.ts'
import { fill, type Line, type Script } from '../../support/rust-sdk/script.ts'
import type { Stage } from '../../support/rust-sdk/stage.ts'
import { newsOf } from './checker/asking.ts'
import { KnownRoom } from './checker/known-room.ts'
import { shapeProblems } from './checker/shape.ts'

/** What one connection of a client was sent since it began. */
export interface Connection {
  readonly session: string
  readonly name: string
  readonly rooms: Map<string, KnownRoom>
  /** The counts of its lists, as they changed. */
  readonly counts: number[]
  /** The rooms of each answer. */
  readonly windows: string[][]
  /** Messages to the device, as JSON. */
  readonly toDevice: string[]
  pos: string | undefined
  lastRequest: Json
}

export interface Player {
  play(line: Line): Promise<void>
  /** Asks as the client did last, for what it does not know yet. */
  askAgain(connection: Connection): Promise<void>
  readonly connections: ReadonlyMap<string, Connection>
  /** The first of each name, before any was refused. */
  readonly beginnings: ReadonlyMap<string, Connection>
  readonly problems: string[]
  readonly refusals: string[]
  token(session: string): string
}

const SYNC = '/_matrix/client/unstable/org.matrix.simplified_msc3575/sync'
/** A request that is answered in the script by news that it here had before need not be waited for. */
const LONGEST_POLL_MS = 250

interface Running {
  readonly path: string
  readonly body: Json
  readonly session: string
  readonly answer: Promise<{ status: number; body: Json } | undefined>
  readonly ending: AbortController
}

/** Says to a server what clients said to another, in the same order, and knows what a client would then know. */
export function createPlayer(
  api: Api,
  script: Script,
  stage: Stage,
  events: Record<string, () => Promise<void>>,
): Player {
  const sessions = new Map([
    ['anna at first', stage.anna.token],
    ['ben at first', stage.ben.token],
  ])
  const running = new Map<number, Running>()
  const answers = new Map<string, Json>()
  const connections = new Map<string, Connection>()
  const beginnings = new Map<string, Connection>()
  const problems: string[] = []
  const refusals: string[] = []

  function value(name: string): string {
    const [id, what] = name.split(' ') as [string, string]
    if (id === 'room') return stage.rooms[Number(what)]!
    const answer = answers.get(id)
    const found = what === 'since' ? answer?.extensions?.to_device?.next_batch : answer?.[what]
    if (found === undefined) throw new Error(`${name} was not answered`)
    return found
  }

  const quoted = (text: string) => JSON.stringify(text).slice(1, -1)

  function start(id: number, session: string, method: string, template: string, place: number | null): void {
    const path = fill(template, (name) => encodeURIComponent(value(name))).replace(
      /timeout=\d+/,
      (text) => `timeout=${Math.min(Number(text.slice(8)), LONGEST_POLL_MS)}`,
    )
    const text = place === null ? undefined : fill(JSON.stringify(script.bodies[place]), (name) => quoted(value(name)))
    const body = text === undefined ? undefined : JSON.parse(text)
    const token = sessions.get(session)
    const ending = new AbortController()
    const answer = api
      .request(method, path, { body, signal: ending.signal, ...(token !== undefined && { token }) })
      .catch(() => undefined)
    running.set(id, { path, body, session, answer, ending })
  }

  async function end(id: number, outcome: string, status: number): Promise<void> {
    const { path, body, session, answer, ending } = running.get(id)!
    running.delete(id)
    if (outcome === 'cancelled') return ending.abort()
    const given = await answer
    // The server was killed meanwhile.
    if (status === 0) return
    if (given?.status !== status) {
      problems.push(`${path}: ${given?.status} ${JSON.stringify(given?.body)}, was ${status}`)
      return
    }
    answers.set(String(id), given.body)
    if (path.endsWith('/login')) sessions.set(body.identifier.user, given.body.access_token)
    if (outcome === 'answered' && path.startsWith(SYNC)) take(session, path, body, given)
  }

  function connectionOf(session: string, path: string, body: Json): Connection {
    const key = `${session} ${body.conn_id}`
    const had = connections.get(key)
    if (had !== undefined && path.includes('pos=')) return had
    const made: Connection = {
      ...{ session, name: body.conn_id, rooms: new Map(), counts: [], windows: [], pos: undefined, lastRequest: body },
      // Messages to the device outlive the connection.
      toDevice: had?.toDevice ?? [],
    }
    connections.set(key, made)
    if (had === undefined) beginnings.set(key, made)
    return made
  }

  function take(session: string, path: string, body: Json, { status, body: answer }: { status: number; body: Json }) {
    if (status !== 200) return void refusals.push(answer.errcode)
    problems.push(...shapeProblems(answer).map((problem) => `${path}: ${problem}`))
    const connection = connectionOf(session, path, body)
    connection.pos = answer.pos
    connection.lastRequest = body
    connection.windows.push(Object.keys(answer.rooms ?? {}))
    const { count } = answer.lists?.all_rooms ?? {}
    if (body.lists?.all_rooms !== undefined) {
      if (count === undefined) problems.push(`${path}: the list has no count`)
      else if (connection.counts.at(-1) !== count) connection.counts.push(count)
    }
    for (const [id, raw] of Object.entries<Json>(answer.rooms ?? {})) {
      const known = connection.rooms.get(id) ?? new KnownRoom()
      if (!connection.rooms.has(id) && raw.initial !== true) problems.push(`${id} is new and not initial`)
      connection.rooms.set(id, known)
      try {
        known.apply(newsOf('unstable', raw))
      } catch (error) {
        problems.push(`${path}: ${id}: ${(error as Error).message}`)
      }
    }
    connection.toDevice.push(
      ...(answer.extensions?.to_device?.events ?? []).map((event: Json) => JSON.stringify(event)),
    )
  }

  return {
    ...{ connections, beginnings, problems, refusals },
    token: (session) => sessions.get(session)!,
    async play(line) {
      if (line[0] === 'start') start(...(line.slice(1) as [number, string, string, string, number | null]))
      else if (line[0] === 'end') await end(...(line.slice(1) as [number, string, number]))
      else await events[line[0]]!()
    },
    async askAgain({ session, pos, lastRequest }) {
      const path = `${SYNC}?timeout=0&pos=${encodeURIComponent(pos!)}`
      const given = await api.request('POST', path, { token: sessions.get(session)!, body: lastRequest })
      take(session, path, lastRequest, given)
    },
  }
}
