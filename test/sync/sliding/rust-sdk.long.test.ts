import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { personOf } from '../../rooms/people.ts'
import { type Api, type Json, openApi, syncPath } from '../../support/api.ts'
import { readScript } from '../../support/rust-sdk/script.ts'
import { ROOM_COUNT, type Stage, setStage } from '../../support/rust-sdk/stage.ts'
import { startServer, type TestServer } from '../../support/server.ts'
import { checkState, checkTimeline, together } from './checker/checks.ts'
import { createTruth } from './checker/truth.ts'
import { type Connection, createPlayer, type Player } from './rust-sdk-player.ts'

/**
 * The requests that two clients on matrix-rust-sdk sent while people used them, sent again to a server of today. `npm run interop --
 * rust-sdk --record test/sync/sliding/rust-sdk.requests.jsonl` recorded them.
 */
const script = readScript(readFileSync(new URL('./rust-sdk.requests.jsonl', import.meta.url), 'utf8'))

let server: TestServer
let api: Api
let stage: Stage
let player: Player

beforeAll(async () => {
  server = await startServer()
  api = openApi(server.baseUrl)
  stage = await setStage(api)
  const crash = () => server.restart()
  async function forget(): Promise<void> {
    await server.database.db.query('TRUNCATE sliding_connection')
  }
  player = createPlayer(api, script, stage, { crash, forget })
  for (const line of script.lines) await player.play(line)
}, 180_000)
afterAll(async () => {
  await api.close()
  await server.close()
})

const connection = (session: string, name: string): Connection => player.connections.get(`${session} ${name}`)!

describe('the requests of matrix-rust-sdk', () => {
  it('are answered as they were, in the shapes that it can read, with nothing twice', () => {
    expect(player.problems).toEqual([])
    expect(new Set(player.refusals)).toEqual(new Set(['M_UNKNOWN_POS']))
  })

  it('keep the messages to devices apart, each once', () => {
    for (const session of ['anna', 'ben']) {
      const { toDevice } = connection(session, 'encryption')
      expect(new Set(toDevice).size).toBe(toDevice.length)
    }
    expect(connection('ben', 'encryption').toDevice.length).toBeGreaterThan(0)
  })

  it.each(['anna', 'ben'])('leave %s with all rooms, as they are', { timeout: 60_000 }, async (session) => {
    const { userId, deviceId } = session === 'anna' ? stage.anna : stage.ben
    const person = personOf(api, { userId, deviceId, token: player.token(session) })
    const list = connection(session, 'room-list')
    await player.askAgain(list)
    expect(player.problems).toEqual([])
    const { rooms } = await person.call('GET', syncPath({ filter: { room: { timeline: { limit: 1 } } } }))
    const joined = Object.keys(rooms.join)
    expect(joined.length).toBe(session === 'anna' ? ROOM_COUNT + 1 : 2)
    const { required_state: required, timeline_limit: limit } = list.lastRequest.lists.all_rooms
    const state = required
      .filter(([, key]: Json) => key !== '$LAZY')
      .map(([type, key]: Json) => [type, key === '$ME' ? userId : key])
    const wanted = together([{ limit, state, isLazy: true }])
    const truthOf = createTruth()
    const problems: string[] = []
    for (const id of joined) {
      const known = list.rooms.get(id)
      const truth = await truthOf(person, { id, lastAt: 0, standings: new Map() })
      if (known === undefined) problems.push(`${id} is missing`)
      else problems.push(...[...checkTimeline(known, truth, limit), ...checkState(known, truth, wanted)])
      const { notification_count: unread } = rooms.join[id].unread_notifications
      if (known?.counts.get('notification_count') !== unread) problems.push(`${id} has not ${unread} unread messages`)
    }
    expect(problems).toEqual([])
  })
})

describe('the list', () => {
  it('comes in windows that grow, with the newest rooms first and no room twice', () => {
    const [first] = script.lines.flatMap((line) =>
      line[0] === 'start' && line[2] === 'anna' && line[4]?.includes('/sync') ? [line[5] as number] : [],
    )
    expect(script.bodies[first!].lists.all_rooms.ranges).toEqual([[0, 19]])
    const windows = firstWindows()
    expect(new Set(windows[0])).toEqual(new Set(stage.rooms.slice(-20)))
    expect(new Set(windows.flat())).toEqual(new Set(stage.rooms))
    expect(windows.flat().length).toBe(ROOM_COUNT)
  })

  it('has a count in each answer; on a new connection it has no room that was left', () => {
    expect(player.beginnings.get('anna room-list')!.counts).toEqual([ROOM_COUNT, ROOM_COUNT + 1])
    expect(player.beginnings.get('ben room-list')!.counts).toEqual([2, 3])
    expect(connection('anna', 'room-list').counts).toEqual([ROOM_COUNT + 1])
    expect(connection('ben', 'room-list').counts).toEqual([2])
  })
})

/** What Anna's list was sent until it had all rooms. */
function firstWindows(): string[][] {
  const windows: string[][] = []
  for (const window of player.beginnings.get('anna room-list')!.windows) {
    windows.push(window)
    if (windows.flat().length >= ROOM_COUNT) break
  }
  return windows
}
