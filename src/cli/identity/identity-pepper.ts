import { randomBytes } from 'node:crypto'
import type { Config } from '../../config/schema.ts'
import { createPepperRotation } from '../../domain/identity/pepper-rotation.ts'
import type { Host } from '../command.ts'
import { withDatabase } from '../database.ts'

/** Rotates the pepper of lookups in the database, with the server running or stopped. */
export async function rotatePepper(host: Host, config: Config): Promise<void> {
  const bindings = await withDatabase(host, config, async (db) => {
    const rotation = createPepperRotation({ db, clock: Date, random: { bytes: randomBytes } })
    return (await rotation.rotate()) ?? 0
  })
  host.print(`A new pepper is in use; ${bindings} bindings were hashed with it.`)
}
