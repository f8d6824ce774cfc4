import type { Config } from '../../config/schema.ts'
import { countContents, filesWith } from '../../store/media/media-contents.ts'
import { progressLine } from '../backup/progress-line.ts'
import { EXIT, type Host } from '../command.ts'
import { withDatabase } from '../database.ts'
import { createLog } from '../serve/log.ts'
import { allContents, checkContent, eachContent, openStore, type StoreName } from './media-stores.ts'

const AT_ONCE = 4
const FILES_NAMED = 20

/** Reads every stored file and compares its hash: a line for each that is missing or damaged, and exit code 1 if there is one. */
export async function verifyMedia(host: Host, config: Config, name: StoreName | undefined): Promise<number> {
  const log = createLog({ level: 'error', format: 'auto' }, host.isTerminal)
  const { store, close } = openStore(config, name ?? config.media.store, log)
  try {
    return await withDatabase(host, config, async (db) => {
      const { progress, clear } = progressLine(host)
      const { bytes: all } = await countContents(db)
      const tally = { good: 0, missing: 0, damaged: 0 }
      let bytes = 0
      await eachContent(allContents(db), AT_ONCE, async (content) => {
        // What is not stored is an upload under way, or was found missing before.
        const found = await checkContent(store, content)
        bytes += content.bytes
        progress('reading files', bytes, all)
        if (found === 'missing' && !content.is_stored) return
        tally[found]++
        if (found === 'good') return
        const files = await filesWith(db, content.digest, FILES_NAMED)
        clear()
        host.print(`${found}: ${content.digest.toString('hex')} ${files.join(' ')}`)
      })
      clear()
      host.print(`${tally.good} good, ${tally.missing} missing, ${tally.damaged} damaged`)
      return tally.missing + tally.damaged === 0 ? EXIT.ok : EXIT.failure
    })
  } finally {
    await close()
  }
}
