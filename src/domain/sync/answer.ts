import { groupBy } from '../../core/group-by.ts'
import type { JsonObject } from '../../core/json.ts'
import { JsonBytes } from '../../core/json-bytes.ts'
import { writeJson } from '../../core/large-integers.ts'
import { AccountDataRow, accountDataBetween } from '../../store/accounts/account-data.ts'
import type { ToDeviceRow } from '../../store/keys/to-device.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Mail } from '../e2e/inboxes.ts'
import type { KeyCounts } from '../keys/key-counts.ts'
import { MAX_ANSWER_PART_BYTES, MAX_MEMBERS_SHARING_PRESENCE } from '../limits.ts'
import type { Ignored } from '../rooms/read/ignored-users.ts'
import type { Room } from '../rooms/room/room.ts'
import { wantedData, writeAccountData } from './account-data-section.ts'
import { namedRooms, roomsWithEvents } from './active-rooms.ts'
import { allOf } from './all-of.ts'
import { type DeviceChanges, deviceChanges, type NeighbourChanges } from './device-changes.ts'
import { ROOMS_AT_ONCE, warm } from './first/warm.ts'
import { invitedSection } from './invited-room.ts'
import { joinedSections } from './joined-room.ts'
import { leftSection } from './left-room.ts'
import { expectedBytes, type Look, type RoomNews, type Section, type SyncRequest, typesAnew } from './look.ts'
import { type PresenceOf, presenceContent } from './presence.ts'
import type { SyncSources } from './sources.ts'
import { type Standing, standingOf } from './standing.ts'
import { encodeStreamToken, type StreamPosition } from './token.ts'
import type { RoomsOfUser, UserRoom } from './user-rooms.ts'

export interface Answer {
  /** Whether it holds no news for the client. */
  readonly isEmpty: boolean
  /** Undefined where no position has moved, so that the client keeps its token. */
  readonly json: JsonBytes | undefined
  /** The token where the client goes on with everything up to there; undefined while messages to its device are left out. */
  readonly next?: string | undefined
}

export const NOTHING_NEW: Answer = { isEmpty: true, json: undefined }

/** What is new for a user between two positions (client-server API, `GET sync`). Synchronous where memory knows all of it. */
export function answerOf(
  sources: SyncSources,
  by: Requester,
  request: SyncRequest,
  since: StreamPosition | undefined,
  now: StreamPosition,
): Answer | Promise<Answer> {
  const ignoring = sources.ignoredUsers.of(by.userNid)
  const answerFor = (ignored: Ignored | undefined) =>
    readAnswer({ sources, by, request, since, now, ignored, timeMs: sources.clock.now() })
  return ignoring instanceof Promise ? ignoring.then(answerFor) : answerFor(ignoring)
}

/** What every answer needs first. */
type Basis = readonly [mail: Mail, rooms: RoomsOfUser, accountData: readonly AccountDataRow[], counts: KeyCounts]

function readAnswer(look: Look): Answer | Promise<Answer> {
  const { sources, by, since, now } = look
  const reading: Basis | Promise<Basis> = allOf([
    sources.inboxes.read(by, since?.toDevice ?? 0, now.ledger),
    sources.userRooms.of(by.userNid),
    changedAccountData(look),
    sources.keyCounts.of(by),
  ])
  const beginning = since === undefined ? beginRooms(look) : undefined
  const go = (basis: Basis) => answerFrom(look, basis, beginning)
  return reading instanceof Promise ? reading.then(go) : go(reading)
}

function answerFrom(look: Look, basis: Basis, beginning: Beginning | undefined): Answer | Promise<Answer> {
  const standing = standingOf(look, basis[1])
  if (standing instanceof Promise) return standing.then((known) => answerIn(look, basis, known, beginning))
  return answerIn(look, basis, standing, beginning)
}

function answerIn(
  look: Look,
  basis: Basis,
  standing: Standing,
  beginning: Beginning | undefined,
): Answer | Promise<Answer> {
  const [, , accountData] = basis
  const { joined, entered, departed } = standing
  const rules = changedPushRules(look)
  // Another read may fail first.
  rules?.catch(() => {})
  const since = look.since ?? look.request.lostAfter
  function answerWith(news: readonly RoomNews[]): Answer | Promise<Answer> {
    const active = news.map(({ roomNid }) => roomNid)
    const gathering = allOf([
      sections(news, look, joinedSections(look)),
      entered.length === 0 ? NO_OTHERS : otherSections(look, entered),
      deviceChanges(since === look.since ? look : { ...look, since }, joined, active, departed),
      rules,
    ])
    return gathering instanceof Promise
      ? gathering.then((gathered) => writeAnswer(look, basis, joined, gathered))
      : writeAnswer(look, basis, joined, gathering)
  }
  const news = recentNews(look, joined, accountData)
  return news ? answerWith(news) : newsOfJoined(look, joined, accountData, beginning).then(answerWith)
}

type Gathered = readonly [
  join: readonly Section[],
  others: typeof NO_OTHERS,
  devices: NeighbourChanges,
  rules: AccountDataRow | undefined,
]

function writeAnswer(
  look: Look,
  [mail, , accountData, counts]: Basis,
  joined: ReadonlyMap<number, UserRoom>,
  [join, others, devices, rules]: Gathered,
): Answer {
  const { sources, by, request, since, now } = look
  const presence = presenceEvents(look, joined, devices.neighbours)
  const ofAccount = accountData.length === 0 ? accountData : accountData.filter(({ room_id }) => room_id === '')
  const global = wantedData(rules ? [...ofAccount, rules] : ofAccount, request.filter.accountData)
  const toDevice = mail.messages()
  const roomCount = join.length + others.invite.length + others.leave.length + others.knock.length
  const keysFell = since !== undefined && sources.keyCounts.fellSince(by, since.ledger)
  const deviceCount = toDevice.length + devices.changed.length + devices.left.length
  const isEmpty = roomCount + presence.length + global.length + deviceCount === 0 && !keysFell
  const isComplete = mail.upTo === now.toDevice
  const next = isComplete ? sources.tokenOf(now) : encodeStreamToken({ ...now, toDevice: mail.upTo })
  const out = new JsonBytes(sources.answerPlaces.take(expectedBytes(join))).text(`{"next_batch":"${next}"`)
  if (!isEmpty) {
    writeRooms(out, join, others)
    writeEvents(out, 'presence', presence)
    writeAccountData(out, look, global, request.filter.accountData)
  }
  writeToDevice(out, toDevice)
  writeKeys(out, devices, counts)
  return { isEmpty, json: out.text('}'), next: isComplete ? next : undefined }
}

/** An empty answer, after which the client continues with this token. */
export function nothingNew(token: string, counts: KeyCounts): JsonBytes {
  return new JsonBytes().text(`{"next_batch":${JSON.stringify(token)}${NO_MESSAGES}${NO_DEVICES}${keyCounts(counts)}}`)
}

const NO_MESSAGES = ',"to_device":{"events":[]}'
const NO_DEVICES = ',"device_lists":{"changed":[],"left":[]}'

function keyCounts({ oneTimeJson, unusedFallbackJson }: KeyCounts): string {
  return `,"device_one_time_keys_count":${oneTimeJson},"device_unused_fallback_key_types":${unusedFallbackJson}`
}

export function changedAccountData({
  sources,
  by,
  since,
  now,
}: Look): readonly AccountDataRow[] | Promise<AccountDataRow[]> {
  const after = since?.ledger ?? 0
  if (since && sources.userLedger.since(by.userNid, after) === false) return NO_ROWS
  return accountDataBetween(sources.db, by.userNid, after, now.ledger, { maxBytes: MAX_ANSWER_PART_BYTES })
}

/** `m.push_rules`, in a first sync and after a change. */
export function changedPushRules({ sources, by, since, now }: Look): Promise<AccountDataRow> | undefined {
  const position = sources.pushRules.changedAt(by.userNid)
  if (since && (position <= since.ledger || position > now.ledger)) return undefined
  return sources.pushRules.ruleset(by).then((global) => {
    const json = JSON.stringify({ global })
    return new AccountDataRow({ room_id: '', type: 'm.push_rules', position, bytes: Buffer.byteLength(json), json })
  })
}

const NO_NUMBERS: ReadonlySet<number> = new Set()
const NO_RECEIPTS: ReadonlyMap<number, JsonObject> = new Map()
const NO_ROWS: readonly AccountDataRow[] = []

/** The result of `newsOfJoined`, if memory alone knows what is new since the last sync; otherwise undefined. */
function recentNews(
  look: Look,
  joined: ReadonlyMap<number, UserRoom>,
  accountData: readonly AccountDataRow[],
): RoomNews[] | undefined {
  const { sources, since, request } = look
  if (!since || request.fullState || accountData.length > 0) return undefined
  const news: RoomNews[] = []
  for (const [roomNid, membership] of joined) {
    const hasEvents = sources.roomEvents.since(roomNid, since.events[0] ?? 0)
    if (hasEvents === undefined || sources.roomLedger.since(roomNid, since.ledger) !== false) return undefined
    if (!hasEvents && !typesAnew(look, roomNid)) continue
    news.push({ roomNid, membership, receipts: undefined, accountData: NO_ROWS })
  }
  return news
}

/** The rooms of a first sync, which are read by then, and the receipts in them. */
type Beginning = Promise<{ readonly roomNids: readonly number[]; readonly receipts: ReadonlyMap<number, JsonObject> }>

/** Begins to read the rooms of a first sync, if it is known which these are. */
function beginRooms(look: Look): Beginning | undefined {
  const rooms = look.sources.userRooms.of(look.by.userNid)
  const standing = rooms instanceof Promise ? rooms : standingOf(look, rooms)
  if (standing instanceof Promise) {
    // The answer asks for it again, and hears of it if it fails.
    standing.catch(() => {})
    return undefined
  }
  const beginning = readRooms(look, standing.joined)
  // Another read may fail first. Whoever waits for this one hears of it.
  beginning.catch(() => {})
  return beginning
}

async function readRooms(look: Look, joined: ReadonlyMap<number, UserRoom>): Beginning {
  const roomNids = await namedRooms(look, [...joined.keys()])
  if (roomNids.length === 0) return { roomNids, receipts: NO_RECEIPTS }
  const { by, now, sources } = look
  const [receipts] = await Promise.all([sources.receipts(by, roomNids, 0, now.ledger), warm(look, roomNids, true)])
  return { roomNids, receipts }
}

/** The joined rooms with news, and the news. @param beginning of a first sync, if there is one yet */
async function newsOfJoined(
  look: Look,
  joined: ReadonlyMap<number, UserRoom>,
  accountData: readonly AccountDataRow[],
  beginning: Beginning | undefined,
): Promise<RoomNews[]> {
  const { sources, since, now, request } = look
  const begun = since ? undefined : await (beginning ?? readRooms(look, joined))
  const isWhole = begun !== undefined || request.fullState
  const roomNids = begun?.roomNids ?? (isWhole ? await namedRooms(look, [...joined.keys()]) : [...joined.keys()])
  const withEvents = isWhole ? new Set(roomNids) : await roomsWithEvents(sources, since!.events, roomNids)
  const receiptsSince = (from: StreamPosition) => {
    const some = roomNids.filter((nid) => sources.roomLedger.since(nid, from.ledger) !== false)
    return some.length === 0 ? NO_RECEIPTS : sources.receipts(look.by, some, from.ledger, now.ledger)
  }
  const ofRooms = accountData.filter((row) => row.room_id !== '')
  const byRoomId = groupBy(ofRooms, (row) => row.room_id)
  const [receipts, touched] = await Promise.all([
    begun?.receipts ?? receiptsSince(since!),
    // A first sync shows all rooms.
    begun ? NO_NUMBERS : numbersOf(look, byRoomId.keys()),
  ])
  const haunted = sources.shadowBans.ghostRooms(look.by.userNid, since?.ledger ?? 0, now.ledger)
  const wanted = roomNids.filter(
    (nid) => withEvents.has(nid) || receipts.has(nid) || touched.has(nid) || haunted.has(nid) || typesAnew(look, nid),
  )
  const news: RoomNews[] = []
  for (const nid of wanted) {
    const roomId = byRoomId.size > 0 ? (await sources.registry.getByNid(nid)).id : ''
    news.push({
      roomNid: nid,
      membership: joined.get(nid)!,
      receipts: receipts.get(nid),
      accountData: byRoomId.get(roomId) ?? [],
    })
  }
  return news
}

async function numbersOf({ sources }: Look, roomIds: Iterable<string>): Promise<ReadonlySet<number>> {
  const found = new Set<number>()
  for (const roomId of roomIds) {
    const room = await sources.registry.get(roomId as never)
    if (room) found.add(room.nid)
  }
  return found
}

function sections(
  news: readonly RoomNews[],
  look: Look,
  section: (look: Look, news: RoomNews) => Section | undefined | Promise<Section | undefined>,
): readonly Section[] | Promise<readonly Section[]> {
  if (news.length !== 1) return news.length === 0 ? NO_SECTIONS : manySections(news, look, section)
  const one = section(look, news[0]!)
  return one instanceof Promise ? one.then(asList) : asList(one)
}

async function manySections(
  news: readonly RoomNews[],
  look: Look,
  section: (look: Look, news: RoomNews) => Section | undefined | Promise<Section | undefined>,
): Promise<Section[]> {
  const found: Section[] = []
  for (let start = 0; start < news.length; start += ROOMS_AT_ONCE) {
    const making = allOf(news.slice(start, start + ROOMS_AT_ONCE).map((entry) => section(look, entry)))
    const some = making instanceof Promise ? await making : making
    for (const entry of some) if (entry) found.push(entry)
  }
  return found
}

const NO_SECTIONS: readonly Section[] = []
const NO_OTHERS = { invite: NO_SECTIONS, knock: NO_SECTIONS, leave: NO_SECTIONS }

function asList(one: Section | undefined): readonly Section[] {
  return one ? [one] : NO_SECTIONS
}

async function otherSections(look: Look, entered: readonly RoomNews[]): Promise<typeof NO_OTHERS> {
  const of = (...memberships: string[]) =>
    entered.filter(({ membership }) => memberships.includes(membership.membership))
  const [invite, knock, leave] = await Promise.all([
    sections(of('invite'), look, invitedSection),
    sections(of('knock'), look, invitedSection),
    sections(of('leave', 'ban'), look, leftSection),
  ])
  return { invite, knock, leave }
}

function writeRooms(out: JsonBytes, join: readonly Section[], { invite, knock, leave }: typeof NO_OTHERS): void {
  writeSections(out.text(',"rooms":{"join":{'), join)
  if (invite.length + knock.length + leave.length === 0) return void out.text(NO_OTHER_ROOMS)
  writeSections(out.text('},"invite":{'), invite)
  writeSections(out.text('},"knock":{'), knock)
  writeSections(out.text('},"leave":{'), leave)
  out.text('}}')
}

const NO_OTHER_ROOMS = '},"invite":{},"knock":{},"leave":{}}'

function writeSections(out: JsonBytes, some: readonly Section[]): void {
  for (let place = 0; place < some.length; place++) {
    const section = some[place]!
    if (!section.hasKey) out.key(section.roomId, place === 0)
    else if (place > 0) out.text(',')
    section.write(out)
  }
}

function writeEvents(out: JsonBytes, name: string, events: readonly object[]): void {
  if (events.length > 0) out.text(`,"${name}":{"events":${writeJson(events)}}`)
}

/** Written in every answer, because clients expect it. */
function writeToDevice(out: JsonBytes, messages: readonly ToDeviceRow[]): void {
  if (messages.length === 0) return void out.text(NO_MESSAGES)
  out.text(',"to_device":{"events":')
  writeMessages(out, messages)
  out.text('}')
}

/** Writes the list of messages to a device. */
export function writeMessages(out: JsonBytes, messages: readonly ToDeviceRow[]): void {
  out.text('[')
  messages.forEach(({ sender, type, content }, index) => {
    out.text(`${index === 0 ? '' : ','}{"sender":${JSON.stringify(sender)},"type":${JSON.stringify(type)},"content":`)
    out.text(content).text('}')
  })
  out.text(']')
}

/** Written in every answer, like the messages. */
function writeKeys(out: JsonBytes, { changed, left }: DeviceChanges, counts: KeyCounts): void {
  if (changed.length + left.length === 0) out.text(NO_DEVICES)
  else out.text(',"device_lists":').value({ changed, left })
  out.text(keyCounts(counts))
}

/** Presence of the user and of those who share a small room with them: what changed, and for new neighbours the current presence. */
export function presenceEvents(
  look: Look,
  joined: ReadonlyMap<number, UserRoom>,
  neighbours: readonly number[],
): JsonObject[] {
  const { sources, since, request, by, ignored, timeMs } = look
  const news = sources.presence.changedSince(since?.ephemeral ?? 0)
  if (news.length + neighbours.length === 0) return []
  let small: readonly Room[] | undefined
  const rooms = () => {
    small ??= [...joined.keys()].flatMap((nid) => smallRoom(sources.registry.peek(nid)) ?? [])
    return small
  }
  const isSeen = (userNid: number, { roomNids }: PresenceOf) =>
    userNid === by.userNid || rooms().some(({ nid, localMembers }) => roomNids?.has(nid) || localMembers.has(userNid))
  const events: JsonObject[] = []
  const add = (userNid: number, presence: PresenceOf) => {
    if (!isSeen(userNid, presence) || ignored?.has(presence.userId)) return
    const event = presenceEvent(presence, timeMs)
    if (request.filter.presence.eventMatches(event)) events.push(event)
  }
  for (const [userNid, presence] of news) {
    if (since !== undefined || presence.state !== 'offline') add(userNid, presence)
  }
  const sent = new Set(neighbours.length === 0 ? [] : news.map(([userNid]) => userNid))
  for (const userNid of neighbours) {
    const presence = sent.has(userNid) ? undefined : sources.presence.ofNumber(userNid)
    if (presence && presence.state !== 'offline') add(userNid, presence)
  }
  return events
}

function smallRoom(room: Room | undefined): Room | undefined {
  return room && room.localMembers.size <= MAX_MEMBERS_SHARING_PRESENCE ? room : undefined
}

function presenceEvent(presence: PresenceOf, timeMs: number) {
  return { type: 'm.presence', sender: presence.userId, content: presenceContent(presence, timeMs) }
}
