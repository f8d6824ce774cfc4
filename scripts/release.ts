import { PROJECT_ROOT } from '../test/support/project.ts'
import { makeRelease, type Step } from './package/make-release.ts'

/** `npm run release -- patch|minor`: after `npm run check` and `npm run test:long`, on the branch that is released. */
const [step, ...more] = process.argv.slice(2)
if ((step !== 'patch' && step !== 'minor') || more.length > 0) {
  console.error('say which number to raise: npm run release -- patch|minor')
  process.exitCode = 2
} else await release(step)

async function release(wanted: Step): Promise<void> {
  try {
    const version = await makeRelease(PROJECT_ROOT, wanted, new Date().toISOString().slice(0, 10))
    console.log(
      `Released ${version}, here only. What is left: git push --follow-tags, and npm run package -- npm deb sbom`,
    )
  } catch (error) {
    console.error(`release: ${(error as Error).message}`)
    process.exitCode = 1
  }
}
