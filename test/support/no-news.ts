import { NO_DEVICE_NEWS } from '../../src/domain/appservices/news.ts'

/** For a server without application services. */
export const NO_NEWS = { ...NO_DEVICE_NEWS, presenceChanged: async () => {} }
