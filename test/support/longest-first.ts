import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files that are small may take long where they start servers, and the last one keeps all others waiting: what is pure comes last. */
const IS_PURE = /\/test\/(core|property|oracle|vectors)\//
/** What takes minutes begins first. On a new clone nobody knows yet how long a file takes, and these are small. */
const TAKES_MINUTES =
  /\/test\/(moderation\/wave|sync\/sliding\/killed-|backup\/(killed|log-holes|point-in-time))[\w-]*\.long\.test/
/** The longest of those that take seconds: on a new clone, most of these small files would begin late, and some alone at the end. */
const TAKES_SECONDS =
  /\/test\/(cli\/(serve\/(serve|own-database)|rooms\/room)|push\/(mails|push-out)|moderation\/list-acls|appservices\/events-out|admin\/rooms\/history-purge|accounts\/actors)\.test/

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const rank = ({ moduleId }: TestSpecification) =>
      TAKES_MINUTES.test(moduleId) || TAKES_SECONDS.test(moduleId) ? 0 : IS_PURE.test(moduleId) ? 2 : 1
    return sorted.toSorted((one, other) => rank(one) - rank(other))
  }
}
