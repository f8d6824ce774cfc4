import { test } from 'vitest'
import { SECRET } from '../admin/office.ts'
import { startGateway } from '../push/gateway.ts'
import { openNeighbourhood } from '../support/neighbours.ts'
import { endWave } from './wave.ts'

const HOUR_MS = 3_600_000

test('one operator ends a wave of 500 accounts, 5,000 invitations and 20,000 messages with three acts', async () => {
  // Three in the morning, by a clock of its own.
  const ahead = 3 * HOUR_MS
  const now = () => Date.now() + ahead
  const street = openNeighbourhood({ clock: { now } })
  const gateway = await startGateway(street.authority)
  try {
    const [home, away] = await Promise.all([street.open({ registration: { shared_secret: SECRET } }), street.open()])
    await endWave(home, away, gateway, { accounts: 500, invitesEach: 10, messagesEach: 40 }, now)
  } finally {
    await gateway.close()
    await street.close()
  }
}, 1_800_000)
