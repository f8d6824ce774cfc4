import { randomBytes } from 'node:crypto'
import type { Config } from '../config/schema.ts'
import { createPepperRotation } from '../domain/identity/pepper-rotation.ts'
import { openDatabase } from '../store/db.ts'
import { prepareDatabase } from '../store/prepare.ts'
import type { Host } from './command.ts'
import { borrowDatabase, MIGRATIONS } from './database.ts'
import { createLog } from './log.ts'

/** Rotates the pepper of lookups in the database, beside a running server or without one. */
export async function rotatePepper(host: Host, config: Config): Promise<void> {
  const log = createLog({ level: 'error', format: 'auto' }, host.isTerminal)
  const database = await borrowDatabase(config, host.uid, log)
  try {
    await prepareDatabase(database.connection, MIGRATIONS, config.server_name)
    const db = openDatabase({ connection: database.connection, poolSize: 1 })
    try {
      const rotation = createPepperRotation({ db, clock: Date, random: { bytes: randomBytes } })
      const bindings = (await rotation.rotate()) ?? 0
      host.print(`A new pepper is in use; ${bindings} bindings were hashed with it.`)
    } finally {
      await db.close()
    }
  } finally {
    await database.stop()
  }
}
