import { expect, it } from 'vitest'
import { openScene, play } from './actors.ts'
import { reconcile } from './convergence.ts'
import { ROUGH } from './network.ts'
import { viewRoom } from './room-view.ts'
import { Run } from './run.ts'
import { startSimulatedServer } from './server.ts'
import { within } from './world.ts'

const ACTIONS = 30

/** All that happens under a seed, on servers that have never done anything. */
async function happenings(seed: number): Promise<unknown> {
  const servers = await Promise.all(['alpha.test', 'beta.test', 'gamma.test'].map(startSimulatedServer))
  try {
    const run = new Run(servers, seed)
    return await within(run, async () => {
      const scene = await openScene(run)
      run.network.conditions = ROUGH
      await play(scene, ACTIONS)
      await reconcile(scene)
      const views = await Promise.all(servers.map(({ db }) => viewRoom(db, scene.roomId)))
      const held = views.map((view) => view && { events: [...view.events.keys()], state: [...view.state] })
      return { trace: run.trace, questions: run.questions, held }
    })
  } finally {
    for (const server of servers) await server.close()
  }
}

it.each([1, 12])('a seed decides every event and every id: %s', async (seed) => {
  const once = await happenings(seed)
  expect(await happenings(seed)).toEqual(once)
  expect(await happenings(seed + 1)).not.toEqual(once)
})
