import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { authorise } from '../../src/core/auth/rules.ts'
import { checkAuthEvents } from '../../src/core/auth/select.ts'
import type { Pdu, Verdict } from '../../src/core/event/format.ts'
import { redact } from '../../src/core/event/redact.ts'
import type { JsonObject } from '../../src/core/json.ts'
import { ROOM_VERSIONS, type RoomVersion } from '../../src/core/room-version.ts'
import { encodeCanonical } from '../../src/core/signing/canonical-json.ts'
import { eventIdOf } from '../../src/core/signing/event-hash.ts'
import { SeededRandom } from '../core/state/random.ts'
import { type AuthCase, RandomAuthRoom, stateKeyOf } from './auth-cases.ts'
import { explain, type PeerVerdict, publishedDefaults } from './auth-differences.ts'
import { readOracleOptions } from './options.ts'
import { Peer } from './peer.ts'

// Random events on random states, judged here and by Synapse: the rules by the state, the rule about an event's own auth events,
// and on the way its id, its content hash and its redacted copy. With `--write` the counts are kept in auth-results.json.

const EVENTS_PER_ROOM = 25
const SHOWN = 10
const FILE = new URL('auth-results.json', import.meta.url)
const DEFAULTS =
  'levels where nothing is said, in versions 1 to 6: document 2 (invite 50; state 0 before there are power levels)'

interface PeerAnswer {
  readonly rules: PeerVerdict
  readonly citations: PeerVerdict
  readonly id: string
  readonly hash: string
  readonly redacted: JsonObject
}

interface Tally {
  events: number
  allowed: number
  refused: number
  citationsRefused: number
  readonly explained: { [why: string]: number }
  readonly unexplained: string[]
}

function ourVerdict(version: RoomVersion, { event, state }: AuthCase): Verdict {
  return authorise(version, event, (type, key) => state.get(stateKeyOf(type, key)))
}

function differs(ours: Verdict, theirs: PeerVerdict): boolean {
  return ours.allowed !== (theirs === null)
}

function compareRules(version: RoomVersion, each: AuthCase, theirs: PeerVerdict, tally: Tally): void {
  const ours = ourVerdict(version, each)
  if (ours.allowed) tally.allowed++
  else tally.refused++
  if (!differs(ours, theirs)) return
  const published = ourVerdict(publishedDefaults(version), each)
  const why = differs(published, theirs) ? explain({ version, case: each, ours: published, theirs }) : DEFAULTS
  if (why === undefined) note(tally, 'rules', each, ours, theirs)
  else tally.explained[why] = (tally.explained[why] ?? 0) + 1
}

function note(tally: Tally, what: string, { event }: AuthCase, ours: unknown, theirs: unknown): void {
  tally.unexplained.push(JSON.stringify({ what, ours, theirs, event }))
}

function compareFacts(version: RoomVersion, each: AuthCase, answer: PeerAnswer, tally: Tally): void {
  const { event, cited } = each
  const citations = checkAuthEvents(version, event, cited)
  if (!citations.allowed) tally.citationsRefused++
  if (event.type !== 'm.room.create' && differs(citations, answer.citations)) {
    note(tally, 'citations', each, citations, answer.citations)
  }
  const redacted = encodeCanonical(redact(version, event))
  const facts = [eventIdOf(version, event), event.hashes.sha256, redacted]
  const theirs = [answer.id, answer.hash, encodeCanonical(answer.redacted)]
  if (facts.join('\n') !== theirs.join('\n')) note(tally, 'facts', each, facts, theirs)
}

async function compareVersion(peer: Peer, version: RoomVersion, cases: number, seed: number): Promise<Tally> {
  const tally: Tally = { events: 0, allowed: 0, refused: 0, citationsRefused: 0, explained: {}, unexplained: [] }
  const random = new SeededRandom(seed)
  while (tally.events < cases) {
    const room = new RandomAuthRoom(version, random)
    const asked = Array.from({ length: EVENTS_PER_ROOM }, () => room.case())
    const pdus = (state: ReadonlyMap<string, Pdu>) => [...state.values()]
    const question = asked.map(({ event, state, cited }) => ({ event, state: pdus(state), cited }))
    const answers = (await peer.ask({ version: version.id, cases: question })) as readonly PeerAnswer[]
    for (const [index, each] of asked.entries()) {
      tally.events++
      compareRules(version, each, answers[index]!.rules, tally)
      compareFacts(version, each, answers[index]!, tally)
    }
  }
  return tally
}

function keep(name: string, outcome: JsonObject): void {
  const results = existsSync(FILE) ? JSON.parse(readFileSync(FILE, 'utf8')) : {}
  writeFileSync(FILE, `${JSON.stringify({ ...results, [name]: outcome }, undefined, 2)}\n`)
}

const options = readOracleOptions(20_000)
const peer = await Peer.start(options.python, 'auth_peer.py')
for (const version of ROOM_VERSIONS.filter(({ id }) => options.only === undefined || options.only === id)) {
  const { unexplained, ...tally } = await compareVersion(
    peer,
    version,
    options.cases,
    options.seed + Number(version.id),
  )
  console.log(`version ${version.id}: ${JSON.stringify({ ...tally, unexplained: unexplained.length })}`)
  for (const each of unexplained.slice(0, SHOWN)) console.log(each)
  if (unexplained.length > 0) process.exitCode = 1
  const outcome = { peer: peer.name, seed: options.seed, ...tally, unexplained: unexplained.length }
  if (options.write) keep(`version ${version.id}`, outcome)
}
peer.stop()
