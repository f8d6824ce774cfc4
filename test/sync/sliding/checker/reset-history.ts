import { Dice } from '../../../federation/dice.ts'
import { Besieged } from '../../../rooms/besieged.ts'
import { clientOf } from '../besieged-client.ts'
import { FORMS } from '../connection.ts'
import type { Wish } from './asking.ts'
import { classicResetClient, type ResetClient, slidingResetClient } from './reset-clients.ts'
import { KEEPER, ResetRoom, WANDERER } from './reset-room.ts'

const WISHES: readonly Wish[] = [
  { limit: 20, state: [['*', '*']], isLazy: false },
  {
    limit: 1,
    state: [
      ['m.room.name', ''],
      ['m.room.topic', ''],
      ['test.state', '*'],
    ],
    isLazy: false,
  },
  { limit: 3, state: [['m.room.join_rules', '']], isLazy: true },
  { limit: 5, state: [['m.room.member', '*']], isLazy: false },
]

/**
 * One room whose history is forked again and again by another server, and clients of two users of ours, by sliding and by classic sync.
 *
 * @param kills how likely the server dies in a step
 * @throws Error with all that was done, when a client is told anything that is not so
 */
export async function checkResets(seed: number, steps: number, kills: number): Promise<{ resets: number }> {
  const home = await Besieged.open()
  const dice = new Dice(seed)
  const log: string[] = []
  let resets = 0
  try {
    const room = await ResetRoom.open(home, seed, dice)
    const clients: ResetClient[] = []
    for (const user of [KEEPER, WANDERER]) {
      const client = await clientOf(home, user)
      for (const form of FORMS) {
        for (const place of [0, 1]) {
          const parts = {
            client,
            form,
            connId: `${form} ${place}`,
            wish: dice.pick(WISHES),
            isWanderer: user === WANDERER,
          }
          clients.push(slidingResetClient(room, parts))
        }
      }
      clients.push(classicResetClient(home, room, user, true), classicResetClient(home, room, user, false))
    }
    let before = await room.truth()
    for (let step = 0; step < steps; step++) {
      log.push(await room.step(dice.chance(kills)))
      const after = await room.truth()
      // State that went, or went back, without an event of its own.
      const isFresh = new Set(after.ids.slice(before.ids.length))
      const changed = [...before.state.keys()].filter((key) => before.state.get(key) !== after.state.get(key))
      if (changed.some((key) => !isFresh.has(after.state.get(key) ?? ''))) resets++
      before = after
      for (const client of clients) {
        if (!dice.chance(0.5)) continue
        const isLost = dice.chance(0.2)
        log.push(`  ${client.name}${isLost ? ' is lost' : ''}`)
        await client.turn(isLost)
      }
    }
    for (const client of clients) {
      log.push(`  ${client.name}, at the end`)
      await client.turn(false)
    }
    await home.audit(room.id)
    return { resets }
  } catch (error) {
    throw new Error(`seed ${seed}:\n${log.join('\n')}\n${(error as Error).message}`, { cause: error })
  } finally {
    await home.close()
  }
}
