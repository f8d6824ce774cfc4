import { afterAll, beforeAll, expect, it } from 'vitest'
import type { EventId, ServerName, UserId } from '../../../src/core/ids.ts'
import { roomVersion } from '../../../src/core/room-version.ts'
import { Dice } from '../../federation/dice.ts'
import { Besieged, EVIL } from '../besieged.ts'
import { Forge } from '../forge.ts'

const ROOMS = Number(process.env.ARRIVAL_ROOMS ?? 40)
const FIRST = Number(process.env.ARRIVAL_SEED ?? 1)
const OTHER = 'other.test' as ServerName
const CREATOR = `@creator:${EVIL}` as UserId
const MOD = `@mod:${OTHER}` as UserId
const GUEST = `@guest:${OTHER}` as UserId

let home: Besieged
beforeAll(async () => {
  home = await Besieged.open()
})
afterAll(() => home.close())

/** Somebody does something, allowed or not, on top of some of the newest events. */
function scribble(forge: Forge, dice: Dice, recent: readonly EventId[]): EventId {
  const prev = dice.shuffled(recent).slice(0, dice.weighted({ 1: 6, 2: 3, 3: 1 } as never) as never)
  const sender = dice.pick([CREATOR, CREATOR, MOD, MOD, GUEST])
  const some = { prev, depth: 10 + dice.below(50) }
  const levels = {
    users: { ...(forge.version.creatorsAreInfinite ? {} : { [CREATOR]: 100 }), [MOD]: dice.pick([0, 50]) },
  }
  const actions = {
    say: () => forge.say(sender, `${dice.below(1000)}`, some),
    topic: () => forge.set(sender, 'm.room.topic', { topic: `${dice.below(1000)}` }, some),
    own: () => forge.set(sender, 'test.own', { n: dice.below(1000) }, { ...some, state_key: sender }),
    levels: () => forge.set(dice.pick([CREATOR, MOD]), 'm.room.power_levels', levels, some),
    rules: () => forge.set(sender, 'm.room.join_rules', { join_rule: dice.pick(['public', 'invite']) }, some),
    ban: () =>
      forge.member(dice.pick([GUEST, home.user('ann')]), 'ban', { ...some, sender: dice.pick([CREATOR, MOD]) }),
    unban: () =>
      forge.member(dice.pick([GUEST, home.user('ann')]), 'leave', { ...some, sender: dice.pick([CREATOR, MOD]) }),
    join: () => forge.member(dice.pick([GUEST, MOD]), 'join', some),
    leave: () => forge.member(dice.pick([GUEST, MOD]), 'leave', some),
    redact: () => forge.make({ type: 'm.room.redaction', sender, redacts: dice.pick(recent), ...some }),
  }
  return actions[
    dice.weighted({ say: 5, topic: 3, own: 2, levels: 2, rules: 1, ban: 1, unban: 2, join: 4, leave: 1, redact: 2 })
  ]()
}

/** What a client that asks for everything is told of the room. */
async function seen(forge: Forge): Promise<unknown> {
  const { rooms } = await home.sync('bob', undefined, { filter: { room: { timeline: { limit: 100 } } } })
  const { timeline, state, summary, unread_notifications } = rooms.join[forge.roomId]
  const plain = ({ unsigned: { age, ...unsigned }, ...event }: { unsigned: { age: number } }) => ({
    ...event,
    unsigned,
  })
  return {
    timeline: { ...timeline, events: timeline.events.map(plain) },
    state: state.events.map(plain),
    summary,
    unread_notifications,
  }
}

async function takeInScribbles(seed: number): Promise<void> {
  const dice = new Dice(seed)
  const version = roomVersion(dice.pick(['1', '2', '6', '9', '11', '12']))!
  const forge = Forge.open(version, `room${seed}`, CREATOR, { users: { [MOD]: 50 } })
  for (const user of [MOD, GUEST]) forge.member(user, 'join')
  await home.takeJoin(forge, 'ann')
  forge.member(home.user('bob'), 'join', { state: forge.states.get(forge.latest!)! })
  expect(await home.kinds(forge, [forge.latest!])).toEqual(['accepted'])
  const made = [forge.latest!]
  for (let count = 0; count < 30; count++) made.push(scribble(forge, dice, made.slice(-dice.between(2, 8))))
  const arriving = dice.shuffled([...made.slice(1), ...made.filter(() => dice.chance(0.15))])
  // In a bounded disorder: mostly what comes before has come.
  const order = arriving
    .map((id) => ({ id, at: made.indexOf(id) + dice.below(12) }))
    .sort((a, b) => a.at - b.at)
    .map(({ id }) => id)
  const silence = { missingEvents: async () => [] }
  while (order.length > 0) {
    const mood = dice.weighted({ honest: 3, forgetful: 2, mute: 1 })
    home.answers(
      mood === 'honest'
        ? forge.answers()
        : forge.answers(
            mood === 'mute' ? { ...silence, stateIds: async () => undefined, events: async () => [] } : silence,
          ),
    )
    const part = order.splice(0, dice.between(1, 6))
    const working = [home.receive(forge, part)]
    if (dice.chance(0.3)) working.push(home.receive(forge, dice.shuffled(part)))
    if (dice.chance(0.3))
      working.push(
        home.say('bob', forge.roomId, 'hm').then(
          () => [],
          () => [],
        ),
      )
    const received = (await Promise.all(working)).flat()
    for (const { kind, reason } of received) if (kind === 'dropped') expect(reason).toMatch(/could not be had/)
    if (dice.chance(0.05)) await home.server.restart()
  }
  home.answers(forge.answers())
  const rest = await home.receive(forge, made)
  expect(rest.filter(({ kind }) => kind === 'dropped')).toEqual([])
  await home.audit(forge.roomId)
  const before = await seen(forge)
  await home.server.restart()
  expect(await seen(forge)).toEqual(before)
  await home.does('bob', (rooms, by) => rooms.leave(by, forge.roomId, {}))
}

it(
  'what is stored of random rooms is what their events say, in whatever order and company they come',
  async () => {
    for (let seed = FIRST; seed < FIRST + ROOMS; seed++) {
      await takeInScribbles(seed).catch((error: Error) => {
        error.message = `seed ${seed}: ${error.message}`
        throw error
      })
    }
  },
  30_000 + ROOMS * 3_000,
)
