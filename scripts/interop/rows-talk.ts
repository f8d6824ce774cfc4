import { setTimeout as pause } from 'node:timers/promises'
import { mapConcurrently } from '../../test/support/api.ts'
import { bothWays, meet, type Row, setLevel } from './row.ts'
import { expect, expectRefusal, textsOf, until, untilHeard, untilSameState } from './seen.ts'
import type { Person, Side, Sides } from './sides.ts'

const MESSAGES = 200
const HISTORY = 500
const AROUND_A_RESTART = 60

const numbered = (count: number, who: string) => Array.from({ length: count }, (_, index) => `${who} ${index}`)

/** One after the other; a message that was not acknowledged is sent again under its transaction id. */
async function sayAll(person: Person, room: string, texts: readonly string[]): Promise<void> {
  for (const [index, text] of texts.entries()) {
    const tag = `${room}-${index}`
    await until(`${text} to be taken`, () =>
      person.say(room, text, tag).then(
        () => true,
        () => false,
      ),
    )
  }
}

/** Each hears all of the other, in order and once. */
async function expectAllHeard(room: string, said: ReadonlyMap<Side, readonly string[]>): Promise<void> {
  for (const by of said.keys()) {
    for (const [of, texts] of said) {
      const what = `${texts.length} messages of ${of.label}, on ${by.label}`
      let heard: string[] = []
      await until(what, async () => {
        heard = await textsOf(by.person, room, of.person)
        return heard.length >= texts.length
      }).catch((error: Error) => {
        throw new Error(`${error.message}; there are ${heard.length}`)
      })
      expect(`${what}, are in order, none lost and none twice`, heard.join() === texts.join())
    }
  }
}

async function talk(sides: Sides, version: string): Promise<string> {
  const { hearth, peer } = sides
  const room = await meet(hearth, peer, version)
  const said = new Map([hearth, peer].map((side) => [side, numbered(MESSAGES, side.label)]))
  const begun = performance.now()
  await Promise.all([...said].map(([side, texts]) => sayAll(side.person, room, texts)))
  await expectAllHeard(room, said)
  await untilSameState(room, hearth, peer)
  return `${((performance.now() - begun) / 1_000).toFixed(0)} s`
}

async function restart(host: Side, guest: Side, version: string): Promise<void> {
  const room = await meet(host, guest, version)
  const said = new Map<Side, readonly string[]>(
    [host, guest].map((side) => [side, numbered(AROUND_A_RESTART, side.label)]),
  )
  const crash = async () => {
    await untilHeard(host, room, `${guest.label} 10`)
    await guest.crash()
  }
  await Promise.all([crash(), ...[...said].map(([side, texts]) => sayAll(side.person, room, texts))])
  // Synapse looks at what it had acknowledged and not taken in yet when the next transaction comes.
  for (const [side, texts] of said) {
    await side.person.say(room, 'all is well')
    said.set(side, [...texts, 'all is well'])
  }
  await expectAllHeard(room, said)
  await untilSameState(room, host, guest)
}

export const talkRows: readonly Row[] = [
  {
    name: `${MESSAGES} messages each way at once: in order, none lost, none twice`,
    versions: 'all',
    run: talk,
  },
  ...bothWays(`{guest} reads ${HISTORY} messages of {host} from before its join`, async (host, guest, version) => {
    const room = await host.person.createRoom({ preset: 'public_chat', room_version: version })
    const texts = numbered(HISTORY, 'history')
    await mapConcurrently(texts, 1, (text) => host.person.say(room, text))
    await guest.person.join(room, host.name)
    let read: string[] = []
    await until(`all ${HISTORY} on ${guest.label}`, async () => {
      read = await textsOf(guest.person, room)
      return read.length >= texts.length
    }).catch((error: Error) => {
      throw new Error(`${error.message}; there are ${read.length}`)
    })
    expect('they are in order, none lost and none twice', read.join() === texts.join())
  }),
  ...bothWays('redactions in a room of {host}: own ones, and by who has the power', async (host, guest, version) => {
    const room = await meet(host, guest, version)
    const redact = (by: Side, id: string, n: number) =>
      by.person.call('PUT', `/rooms/${encodeURIComponent(room)}/redact/${encodeURIComponent(id)}/r${n}`, {})
    const isPruned = (by: Side, id: string) =>
      until(`a redacted event on ${by.label}`, async () => {
        const path = `/rooms/${encodeURIComponent(room)}/event/${encodeURIComponent(id)}`
        const event = await by.person.call('GET', path).catch(() => undefined)
        return event !== undefined && Object.keys(event.content).length === 0
      })
    const [byHost, byGuest, other] = [
      await host.person.say(room, 'one'),
      await guest.person.say(room, 'two'),
      await guest.person.say(room, 'three'),
    ]
    await Promise.all([untilHeard(guest, room, 'one'), untilHeard(host, room, 'three')])
    await redact(host, byHost, 1)
    await redact(guest, byGuest, 2)
    await redact(host, other, 3)
    for (const id of [byHost, byGuest, other]) for (const side of [host, guest]) await isPruned(side, id)
    const another = await host.person.say(room, 'four')
    await untilHeard(guest, room, 'four')
    await expectRefusal('a redaction without power', 'M_FORBIDDEN', redact(guest, another, 4))
  }),
  ...bothWays('{host} gives power to a user of {guest}, and takes the power away', async (host, guest, version) => {
    const room = await meet(host, guest, version)
    const topic = (by: Side, text: string) => by.person.set(room, 'm.room.topic', { topic: text })
    const hasTopic = (by: Side, text: string) =>
      until(`the topic ${text} on ${by.label}`, async () => {
        return (await by.person.state(room, 'm.room.topic').catch(() => undefined))?.topic === text
      })
    await expectRefusal('a topic without power', 'M_FORBIDDEN', topic(guest, 'mine'))
    const seen = (level: number) =>
      until(`level ${level} on ${guest.label}`, async () => {
        return (await guest.person.state(room, 'm.room.power_levels')).users[guest.person.userId] === level
      })
    await setLevel(host, room, guest, 50)
    await seen(50)
    await topic(guest, 'mine')
    await hasTopic(host, 'mine')
    await setLevel(host, room, guest, 0)
    await seen(0)
    await expectRefusal('a topic without power any more', 'M_FORBIDDEN', topic(guest, 'mine again'))
    await untilSameState(room, host, guest)
  }),
  ...bothWays('a conflict in a room of {host}, from a partition', async (host, guest, version, { partitionMs }) => {
    const room = await meet(host, guest, version)
    await setLevel(host, room, guest, 50)
    await until('the power', async () => {
      return (await guest.person.state(room, 'm.room.power_levels')).users[guest.person.userId] === 50
    })
    host.gate.shut()
    guest.gate.shut()
    try {
      await host.person.set(room, 'm.room.topic', { topic: 'of the host' })
      await guest.person.set(room, 'm.room.topic', { topic: 'of the guest' })
      await setLevel(host, room, guest, 0)
      await guest.person.set(room, 'm.room.name', { name: 'of the guest' })
      await host.person.set(room, 'm.room.join_rules', { join_rule: 'invite' })
      await pause(partitionMs)
    } finally {
      host.gate.open()
      guest.gate.open()
    }
    const texts = [host, guest].map((side) => `${side.label} is there again`)
    await host.person.say(room, texts[0]!)
    await guest.person.say(room, texts[1]!)
    await Promise.all([untilHeard(guest, room, texts[0]!), untilHeard(host, room, texts[1]!)])
    await untilSameState(room, host, guest)
    const { topic } = await host.person.state(room, 'm.room.topic')
    expect('the topic is that of the host, who took the power', topic === 'of the host')
  }),
  ...bothWays(
    `{guest} is killed and started again while ${AROUND_A_RESTART} messages go each way in a room of {host}`,
    restart,
  ),
]
