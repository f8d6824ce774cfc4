import { buildDeb } from './deb.ts'
import { OUTPUT, packTarball } from './project.ts'
import { writeSbom } from './sbom.ts'

/** Each kind of package, and what makes it. */
const KINDS: Readonly<Record<string, () => Promise<string>>> = {
  npm: () => packTarball(OUTPUT),
  deb: buildDeb,
  sbom: writeSbom,
}

const kinds = process.argv.slice(2)
const unknown = kinds.find((kind) => !Object.hasOwn(KINDS, kind))
if (kinds.length === 0 || unknown !== undefined) {
  console.error(`say what to make: npm run package -- ${Object.keys(KINDS).join('|')}`)
  process.exitCode = 2
} else {
  for (const kind of kinds) console.log(await KINDS[kind]!())
}
