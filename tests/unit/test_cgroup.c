/* SPDX-License-Identifier: GPL-2.0-or-later */
/* /proc/PID/cgroup as written under container engines and systemd, and which processes the rules
 * select. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <errno.h>

#include <cmocka.h>

#include "process/cgroup.h"
#include "process/select.h"

#define ID	   "1f2e3d4c5b6a79880102030405060708090a0b0c0d0e0f101112131415161718"
#define STATIC_POD "5d1c2a7e9b3f40618c2d4e6fa0b1c2d3"

static void expect(const char *text, const char *path, const char *container, const char *pod,
		   const char *service)
{
	struct cgroup g;

	assert_int_equal(cgroup__parse(text, strlen(text), &g), 0);
	assert_string_equal(g.path, path);
	assert_string_equal(g.container, container);
	assert_string_equal(g.pod, pod);
	assert_string_equal(g.service, service);
}

static void test_names(void **state)
{
	(void)state;
	expect("0::/\n", "/", "", "", "");
	expect("0::/system.slice/nginx.service\n", "/system.slice/nginx.service", "", "",
	       "nginx.service");
	expect("0::/user.slice/user-1000.slice/user@1000.service/app.slice/a.service\n",
	       "/user.slice/user-1000.slice/user@1000.service/app.slice/a.service", "", "",
	       "user@1000.service/a.service");
	/* everything that a user runs is below his manager, but is not a service of it */
	expect("0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-u7.scope\n",
	       "/user.slice/user-1000.slice/user@1000.service/app.slice/run-u7.scope", "", "", "");
	expect("0::/system.slice/docker-" ID ".scope\n", "/system.slice/docker-" ID ".scope", ID,
	       "", "");
	expect("0::/kubepods.slice/kubepods-burstable.slice/"
	       "kubepods-burstable-pod0f9c1d2e_3a4b_5c6d_7e8f_901234567890.slice/"
	       "cri-containerd-" ID ".scope\n",
	       "/kubepods.slice/kubepods-burstable.slice/"
	       "kubepods-burstable-pod0f9c1d2e_3a4b_5c6d_7e8f_901234567890.slice/"
	       "cri-containerd-" ID ".scope",
	       ID, "0f9c1d2e-3a4b-5c6d-7e8f-901234567890", "");
	expect("0::/kubepods/besteffort/pod0f9c1d2e-3a4b-5c6d-7e8f-901234567890/" ID "\n",
	       "/kubepods/besteffort/pod0f9c1d2e-3a4b-5c6d-7e8f-901234567890/" ID, ID,
	       "0f9c1d2e-3a4b-5c6d-7e8f-901234567890", "");
	/* a static pod */
	expect("0::/kubepods/burstable/pod" STATIC_POD "/" ID "\n",
	       "/kubepods/burstable/pod" STATIC_POD "/" ID, ID, STATIC_POD, "");
	expect("0::/kubelet.slice/kubelet-kubepods-pod" STATIC_POD ".slice/crio-" ID ".scope\n",
	       "/kubelet.slice/kubelet-kubepods-pod" STATIC_POD ".slice/crio-" ID ".scope", ID,
	       STATIC_POD, "");
	/* one digit too many */
	expect("0::/docker/" ID "0\n", "/docker/" ID "0", "", "", "");
	expect("0::/kubepods/pod" STATIC_POD "0\n", "/kubepods/pod" STATIC_POD "0", "", "", "");
}

static void test_hierarchies(void **state)
{
	(void)state;
	expect("12:cpu,cpuacct:/a\n1:name=systemd:/b.service\n", "/b.service", "", "", "b.service");
	expect("12:cpu,cpuacct:/a\n1:name=systemd:/b.service\n0::/c\n", "/c", "", "", "");
	/* the unified hierarchy is mounted but not used */
	expect("9:name=systemd:/docker/" ID "\n4:memory:/docker/" ID "\n0::/\n", "/docker/" ID, ID,
	       "", "");
	expect("4:memory:/\n0::/\n", "/", "", "", "");
	expect("12:cpu,cpuacct:/a:b", "/a:b", "", "", "");
}

#define POD "0f9c1d2e-3a4b-5c6d-7e8f-901234567890"

/* As the engines' cgroupfs drivers leave it where systemd uses a hybrid hierarchy: the unified
 * one has the service that started the process, the others have the container. */
static void test_hybrid(void **state)
{
	(void)state;
	expect("12:pids:/docker/" ID "\n1:name=systemd:/docker/" ID
	       "\n0::/system.slice/containerd.service\n",
	       "/docker/" ID, ID, "", "");
	expect("0::/system.slice/containerd.service\n12:pids:/kubepods/burstable/pod" POD "/" ID
	       "\n1:name=systemd:/kubepods/burstable/pod" POD "/" ID "\n",
	       "/kubepods/burstable/pod" POD "/" ID, ID, POD, "");
	/* of several the unified one, as always */
	expect("1:name=systemd:/a/" ID "\n0::/b/" ID "\n", "/b/" ID, ID, "", "");
	/* only some of the others */
	expect("12:pids:/docker/" ID "\n1:name=systemd:/\n0::/system.slice/docker.service\n",
	       "/docker/" ID, ID, "", "");
}

/* A unit before the container in the path runs the container; a unit after it runs inside. */
static void test_engines(void **state)
{
	(void)state;
	expect("0::/system.slice/containerd.service/kubepods-burstable-pod" POD
	       ".slice:cri-containerd:" ID "\n",
	       "/system.slice/containerd.service/kubepods-burstable-pod" POD
	       ".slice:cri-containerd:" ID,
	       ID, POD, "");
	expect("0::/system.slice/docker-" ID ".scope/system.slice/nginx.service\n",
	       "/system.slice/docker-" ID ".scope/system.slice/nginx.service", ID, "",
	       "1f2e3d4c5b6a/nginx.service");
	/* a unit of Podman, whose containers are in subgroups of the service */
	expect("0::/system.slice/web.service/libpod-payload-" ID "\n",
	       "/system.slice/web.service/libpod-payload-" ID, ID, "", "web.service");
}

#define OTHER_ID  "ffeeddccbbaa79880102030405060708090a0b0c0d0e0f101112131415161718"
#define OTHER_POD "ffffffff-3a4b-5c6d-7e8f-901234567890"
#define USERS	  "/user.slice/user-1000.slice/user@1000.service"

static void expect_place(const char *path, const char *container, const char *pod,
			 const char *service)
{
	char text[CGROUP_PATH_SIZE + 8];

	snprintf(text, sizeof(text), "0::%s\n", path);
	expect(text, path, container, pod, service);
}

/* A user can make groups below his manager and name them freely. */
static void test_users(void **state)
{
	(void)state;
	expect_place(USERS "/app.slice/app-foo.slice/postgresql.service", "", "",
		     "user@1000.service/postgresql.service");
	expect_place(USERS "/postgresql.service", "", "", "user@1000.service/postgresql.service");
	expect_place(USERS "/system.slice/run-u7.scope/postgresql.service", "", "",
		     "user@1000.service/run-u7.scope/postgresql.service");
	expect_place(USERS "/a.service/postgresql.service", "", "", "user@1000.service/a.service");
	expect_place(USERS "/user@0.service/postgresql.service", "", "",
		     "user@1000.service/user@0.service");
	expect_place(USERS, "", "", "");
	/* rootless Podman, or a fake with another container's id */
	expect_place(USERS "/user.slice/libpod-" ID ".scope/container", "user@1000.service/" ID, "",
		     "");
	expect_place(USERS "/app.slice/web.service/libpod-payload-" ID, "user@1000.service/" ID, "",
		     "user@1000.service/web.service");
	expect_place(USERS "/user.slice/libpod-" ID ".scope/system.slice/nginx.service",
		     "user@1000.service/" ID, "", "user@1000.service/1f2e3d4c5b6a/nginx.service");
	expect_place(USERS "/kubepods.slice/kubepods-pod" POD ".slice/cri-containerd-" ID ".scope",
		     "user@1000.service/" ID, "", "");
	expect_place(USERS "/kubepods/pod" POD, "", "", "");
	expect_place("/capsule.slice/capsule@a.service/app.slice/b.service", "", "",
		     "capsule@a.service/b.service");
	/* seen from inside another cgroup namespace */
	expect_place("/../.." USERS "/nginx.service", "", "", "user@1000.service/nginx.service");
	expect_place("/../../system.slice/nginx.service", "", "", "nginx.service");
	/* in another hierarchy the process is in a real container */
	expect("0::" USERS "/docker-" OTHER_ID ".scope\n12:pids:/docker/" ID "\n", "/docker/" ID,
	       ID, "", "");
}

/* Whoever is in a group can make groups below it: only the outermost is trusted. */
static void test_inner(void **state)
{
	(void)state;
	expect_place("/system.slice/a.service/postgresql.service", "", "", "a.service");
	expect_place("/docker/" ID "/docker/" OTHER_ID, ID, "", "");
	expect_place("/system.slice/docker-" ID ".scope/kubepods.slice/kubepods-pod" POD
		     ".slice/cri-containerd-" OTHER_ID ".scope",
		     ID, "", "");
	expect_place("/kubepods/pod" POD "/" ID "/kubepods/pod" OTHER_POD "/" OTHER_ID, ID, POD,
		     "");
	expect_place("/docker/" ID "/user.slice/user@0.service/a.service", ID, "",
		     "1f2e3d4c5b6a/user@0.service/a.service");
	expect_place("/system.slice/containerd.service/kubepods-pod" POD ".slice:cri-containerd:" ID
		     "/nginx.service",
		     ID, POD, "1f2e3d4c5b6a/nginx.service");
	expect_place("/system.slice/a.service/web.service/libpod-payload-" ID, ID, "", "");
	expect_place("/machine.slice/machine-a.scope/payload/system.slice/nginx.service", "", "",
		     "machine-a.scope/nginx.service");
	expect_place("/lxc.payload.a/system.slice/nginx.service", "", "",
		     "lxc.payload.a/nginx.service");
	expect_place("/user.slice/user-1000.slice/session-3.scope/nginx.service", "", "",
		     "session-3.scope/nginx.service");
}

/* A name that does not fit is dropped: truncated, it might be another unit's. */
static void test_long_names(void **state)
{
	char unit[256], path[CGROUP_PATH_SIZE], name[CGROUP_PATH_SIZE];

	(void)state;
	memset(unit, 'a', sizeof(unit));
	memcpy(unit + sizeof(unit) - 9, ".service", 9);
	snprintf(path, sizeof(path), "/system.slice/%s", unit);
	expect_place(path, "", "", unit);
	snprintf(path, sizeof(path), USERS "/%s", unit);
	snprintf(name, sizeof(name), "user@1000.service/%s", unit);
	expect_place(path, "", "", name);
	snprintf(path, sizeof(path), USERS "/%.240s.scope/%s", unit, unit);
	expect_place(path, "", "", "");
	snprintf(path, sizeof(path), USERS "/%.240s.scope/%.200s.scope/nginx.service", unit, unit);
	snprintf(name, sizeof(name), "user@1000.service/%.240s.scope/nginx.service", unit);
	expect_place(path, "", "", name);
}

static void test_damaged(void **state)
{
	char text[2 * CGROUP_PATH_SIZE];
	struct cgroup g;

	(void)state;
	assert_int_equal(cgroup__parse("", 0, &g), -ENOENT);
	assert_int_equal(cgroup__parse("a:b\n\n::", 5, &g), -ENOENT);
	memset(text, 'a', sizeof(text));
	memcpy(text, "0::/", 4);
	assert_int_equal(cgroup__parse(text, sizeof(text), &g), -ENAMETOOLONG);
	memcpy(text, "1:a:/x\n0::/", 11);
	assert_int_equal(cgroup__parse(text, sizeof(text), &g), -ENAMETOOLONG);
	/* an overlong line of another hierarchy does not matter */
	memcpy(text, "1:a:/", 5);
	memset(text + 5, 'a', sizeof(text) - 5);
	memcpy(text + sizeof(text) - 7, "\n0::/x\n", 7);
	assert_int_equal(cgroup__parse(text, sizeof(text), &g), 0);
	assert_string_equal(g.path, "/x");
	memset(text, 'a', sizeof(text));
	memcpy(text, "0::/", 4);
	assert_int_equal(cgroup__parse(text, CGROUP_PATH_SIZE + 2, &g), 0);
	assert_int_equal(strlen(g.path), CGROUP_PATH_SIZE - 1);
}

/* Rules applied to this process. */
static void test_rules(void **state)
{
	static const struct {
		enum select_kind kind;
		const char *text;
		bool exclude, wanted;
	} cases[] = {
		{SELECT_COMM, "test_cgr*", false, true},    {SELECT_COMM, "other", false, false},
		{SELECT_COMM, "other", true, true},	    {SELECT_COMM, "test_c*", true, false},
		{SELECT_EXE, "*/test_cgroup", false, true}, {SELECT_EXE, "/nowhere", false, false},
		{SELECT_CGROUP, "*", false, true},	    {SELECT_CGROUP, "*", true, false},
	};
	char user[16];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct select_rules rules = {.n = 0};

		assert_int_equal(
			select__add(&rules, cases[i].kind, cases[i].text, cases[i].exclude), 0);
		assert_int_equal(select__wants(&rules, getpid()), cases[i].wanted);
		/* another kind of rule: both must match */
		snprintf(user, sizeof(user), "%u", getuid() + 1);
		assert_int_equal(select__add(&rules, SELECT_USER, user, false), 0);
		assert_false(select__wants(&rules, getpid()));
		/* the same kind of rule: either may match */
		snprintf(user, sizeof(user), "%u", getuid());
		assert_int_equal(select__add(&rules, SELECT_USER, user, false), 0);
		assert_int_equal(select__wants(&rules, getpid()), cases[i].wanted);
	}
}

static void test_no_such_user(void **state)
{
	struct select_rules rules = {.n = 0};

	(void)state;
	assert_int_equal(select__add(&rules, SELECT_USER, "no such user", false), -ENOENT);
	assert_int_equal(select__add(&rules, SELECT_USER, "-1", false), -ENOENT);
	assert_int_equal(select__add(&rules, SELECT_USER, "", false), -ENOENT);
	assert_int_equal(select__kind("exe=x", 3), SELECT_EXE);
	assert_int_equal(select__kind("exes", 4), SELECT_KINDS);
}

/* A path without a slash at its beginning, as of a name alone, would match no process. */
static void test_no_path(void **state)
{
	static const char *const good[] = {"/usr/bin/x", "*x",	 "?usr/x",
					   "[/]x",	 "\\/x", "(unreachable)/x"};
	static const char *const wrong[] = {"x", "usr/bin/x", "x*", "./x", "~/x", "\"/x\""};
	static const enum select_kind kinds[] = {SELECT_EXE, SELECT_CGROUP};
	struct select_rules rules = {.n = 0};

	(void)state;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
		for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
			assert_int_equal(select__add(&rules, kinds[k], good[i], i % 2), 0);
		for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
			assert_int_equal(select__add(&rules, kinds[k], wrong[i], i % 2), -EDOM);
	}
	assert_int_equal(rules.n, 2 * sizeof(good) / sizeof(*good));
	assert_int_equal(select__add(&rules, SELECT_COMM, "x", false), 0);
	assert_int_equal(select__add(&rules, SELECT_EXE, "", false), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	   cmocka_unit_test(test_hierarchies),
		cmocka_unit_test(test_hybrid),	   cmocka_unit_test(test_engines),
		cmocka_unit_test(test_users),	   cmocka_unit_test(test_inner),
		cmocka_unit_test(test_long_names), cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_rules),	   cmocka_unit_test(test_no_such_user),
		cmocka_unit_test(test_no_path),
	};

	return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
