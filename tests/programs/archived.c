/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program to be linked with static archives: it calls much of the C library, and with -DGMP of
 * libgmp. Its results are of no use.
 */
#include <arpa/inet.h>
#include <complex.h>
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <iconv.h>
#include <locale.h>
#include <math.h>
#include <netdb.h>
#include <pthread.h>
#include <regex.h>
#include <search.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>
#ifdef GMP
#include <gmp.h>
#endif

static _Thread_local int own = 3;

static int compare(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void *thread(void *semaphore)
{
	errno = EINVAL;
	own += errno;
	perror("thread");
	sem_post(semaphore);
	return NULL;
}

static void threads(void)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	struct timespec past = {1, 0};
	sem_t semaphore;
	pthread_t id;

	sem_init(&semaphore, 0, 0);
	if (!pthread_create(&id, NULL, thread, &semaphore)) {
		sem_wait(&semaphore);
		pthread_join(id, NULL);
	}
	pthread_mutex_lock(&mutex);
	pthread_cond_timedwait(&cond, &mutex, &past);
	pthread_mutex_unlock(&mutex);
	pthread_rwlock_wrlock(&lock);
	pthread_rwlock_unlock(&lock);
	printf("%d\n", own);
}

static void numbers(double x)
{
	double complex z = cexp(x + x * I) + clog(x * I);

	printf("%g %g %g %g\n", sin(x) + cos(x) + tan(x), exp(x) + log(x) + pow(x, 3.3),
	       atan2(x, 2) + sinh(x) + hypot(x, 2), lgamma(x) + tgamma(x) + erf(x) + cbrt(x));
	printf("%Lf %f %g\n", expl(x) + powl(x, 2), (double)(sinf((float)x) + logf((float)x)),
	       creal(z));
	printf("%g %llu\n", strtod("1e300", NULL), strtoull("77", NULL, 8));
}

static void texts(void)
{
	char line[64] = "a,b,c", word[32], *rest;
	regex_t regex;
	wchar_t wide[32];
	iconv_t how;

	for (char *part = strtok_r(line, ",", &rest); part; part = strtok_r(NULL, ",", &rest))
		puts(part);
	if (!regcomp(&regex, "a(b|c)*[[:alpha:]]+d$", REG_EXTENDED)) {
		printf("%d\n", regexec(&regex, "xxabcbzd", 0, NULL, 0));
		regfree(&regex);
	}
	swprintf(wide, 32, L"%ls %d %f", L"x", 3, 1.5);
	printf("%zu %d %lc\n", wcslen(wide), !!iswalpha((wint_t)wide[0]),
	       towupper((wint_t)wide[0]));
	how = iconv_open("UTF-16", "UTF-8");
	if (how != (iconv_t)-1)
		iconv_close(how);
	printf("%s %s %d\n", strstr("hello world", "wor"), strerror(ENOENT), strcoll("a", "b"));
	printf("%d %d\n", fnmatch("a*b[cd]", "axxbc", 0), sscanf("1 x", "%*d %31[a-z]", word));
}

static void times(void)
{
	time_t now = time(NULL);
	char text[128];
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(text, sizeof(text), "%A %c %Z", &tm);
	printf("%s %ld\n", text, (long)mktime(&tm));
}

static void files(void)
{
	DIR *dir = opendir("/");
	FILE *f = tmpfile();
	glob_t found;

	if (dir) {
		printf("%d\n", readdir(dir) != NULL);
		closedir(dir);
	}
	if (f) {
		fprintf(f, "%d %s", 3, "x");
		fclose(f);
	}
	if (!glob("/etc/host*", 0, NULL, &found))
		globfree(&found);
}

static void network(void)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST}, *found = NULL;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char text[INET6_ADDRSTRLEN];
	struct in6_addr address;

	close(fd);
	if (inet_pton(AF_INET6, "::1", &address) == 1)
		puts(inet_ntop(AF_INET6, &address, text, sizeof(text)));
	if (!getaddrinfo("127.0.0.1", "80", &hints, &found))
		freeaddrinfo(found);
}

static void memory(void)
{
	int values[100], *few = calloc(3, sizeof(*few)), *more = realloc(few, 500);
	void *root = NULL;

	free(more ? more : few);
	for (int i = 0; i < 100; i++)
		values[i] = rand() % 1000;
	qsort(values, 100, sizeof(*values), compare);
	tsearch(values, &root, compare);
	tdelete(values, &root, compare);
	printf("%d\n", bsearch(values, values, 100, sizeof(*values), compare) != NULL);
}

#ifdef GMP
static void large_numbers(void)
{
	mpz_t a, b;

	mpz_init_set_str(a, "123456789012345678901234567890", 10);
	mpz_init(b);
	mpz_pow_ui(b, a, 1000);
	mpz_tdiv_q(b, b, a);
	mpz_powm(b, b, a, a);
	mpz_gcd(b, b, a);
	mpz_nextprime(b, a);
	gmp_printf("%Zd\n", b);
	mpz_clears(a, b, NULL);
}
#endif

int main(int argc, char **argv)
{
	(void)argv;
	setlocale(LC_ALL, "");
	signal(SIGUSR1, SIG_IGN);
	numbers(argc + 0.5);
	threads();
	texts();
	times();
	files();
	network();
	memory();
#ifdef GMP
	large_numbers();
#endif
	return 0;
}
