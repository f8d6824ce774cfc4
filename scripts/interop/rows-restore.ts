import { meet, type Row } from './row.ts'
import { expect, textsOf, until, untilHeard, untilSameState } from './seen.ts'

/** From the moment that the restored server answers. */
const AGREED_WITHIN_MS = 60_000

/** Says what both have, each once: in which order what was lost comes back is another matter. */
const isSame = (one: readonly string[], other: readonly string[]): boolean =>
  one.toSorted().join('\n') === other.toSorted().join('\n')

export const restoreRows: readonly Row[] = [
  {
    name: `Hearth is killed and restored from a backup of before the last messages: within ${AGREED_WITHIN_MS / 1_000} s both have all of them again`,
    versions: 'once',
    async run(sides) {
      const { hearth, peer } = sides
      const room = await meet(hearth, peer, '11')
      const both = [hearth, peer]
      const sayOnBoth = async (what: string) => {
        for (const side of both) await side.person.say(room, `${side.label} ${what}`)
        await untilHeard(hearth, room, `${peer.label} ${what}`)
        await untilHeard(peer, room, `${hearth.label} ${what}`)
      }
      await sayOnBoth('before the backup')
      const restore = await sides.backUp()
      await sayOnBoth('after the backup')
      const topic = await hearth.person.set(room, 'm.room.topic', { topic: 'set after the backup' })
      await until('the topic on both', async () => {
        return (await peer.person.state(room, 'm.room.topic').catch(() => undefined))?.topic === 'set after the backup'
      })
      await restore()
      const begun = performance.now()
      await hearth.person.say(room, 'Hearth is back')
      await untilHeard(peer, room, 'Hearth is back')
      await peer.person.say(room, 'welcome back')
      await untilHeard(hearth, room, 'welcome back')
      let [here, there]: string[][] = [[], []]
      await until('the same messages on both', async () => {
        ;[here, there] = await Promise.all(both.map((side) => textsOf(side.person, room)))
        return isSame(here!, there!)
      }).catch((error: Error) => {
        throw new Error(`${error.message}; there are ${here!.length} and ${there!.length}`)
      })
      expect('none is lost and none is there twice', new Set(here).size === 6 && here!.length === 6)
      await untilSameState(room, hearth, peer)
      const found = await hearth.person.call(
        'GET',
        `/rooms/${encodeURIComponent(room)}/event/${encodeURIComponent(topic)}`,
      )
      expect('the topic that was lost is the same event', found.event_id === topic)
      const seconds = (performance.now() - begun) / 1_000
      expect(`it took ${seconds.toFixed(0)} s`, seconds * 1_000 <= AGREED_WITHIN_MS)
      return `${seconds.toFixed(0)} s`
    },
  },
]
